"""The dashboard: runs and suites below a folder in a browser, live.

Reads journals through read-only connections and writes nothing. It decides nothing: numbers, words
and plots come from verdicts and from `hotloop.report`. One file a page (`page_*.py`), one a picture
(`plot_*.py`); `gate.py` says who may ask, `stream.py` tells browsers that something is new.
"""
