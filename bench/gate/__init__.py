"""The regression gate: ratios are compared with a baseline, and it fails where one got much worse."""
