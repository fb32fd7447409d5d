"""From pictures to graphs of sites."""
