"""The colors of pages that spinseg writes, on light and on dark ground; the web app's style sheet has the same."""

THEME = """\
:root {
  --ground: #ffffff; --ink: #1c1c22; --quiet: #5c5c68; --rule: #dcdce4; --panel: #f5f5f8; --shade: #00000038;
  --good: #1f8a4c; --poor: #cc7a00; --unknown: #848490; --accent: #2260bd; --warning: #9a5b00;
  --c0: #2260bd; --c1: #f05000; --c2: #019d6f; --c3: #7c0980;
  --c4: #8a5f03; --c5: #4697b1; --c6: #8c0a2c; --c7: #3b3639;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #17171c; --ink: #ececf2; --quiet: #a9a9b8; --rule: #3a3a46; --panel: #212129; --shade: #ffffff40;
    --good: #3fbf77; --poor: #f2a93b; --unknown: #8a8a98; --accent: #6db3ff; --warning: #f2a93b;
    --c0: #3f9bff; --c1: #ff9a3c; --c2: #3fe0a4; --c3: #c24fba;
    --c4: #f7f09a; --c5: #98e0f7; --c6: #f5305f; --c7: #957476;
  }
}"""
