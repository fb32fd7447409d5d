"""The report of a segmentation, one HTML file that needs no other."""

from spinseg.segmentation.report.page import report as report
from spinseg.segmentation.report.pictures import DetailView as DetailView
