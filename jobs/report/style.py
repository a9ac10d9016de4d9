"""How the page looks; it follows the reader's light or dark setting."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --dim: #5b6b7b; --line: #d5dde5;
  --mark: #3574b5; --fail: #c0392b; --paper: #fff; --good: #e4f3e8; --look: #fdf0d9; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe7ee; --dim: #93a3b3; --line: #34424f;
  --mark: #6aa6e0; --fail: #ef7566; --paper: #151c23; --good: #1d3a26; --look: #46361a; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.verdict { padding: .6rem .9rem; border-radius: .4rem; }
.good { background: var(--good); } .look { background: var(--look); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0;
  overflow-wrap: anywhere; }
th { color: var(--dim); font-weight: 500; white-space: nowrap; }
.list td, .list thead th { border-bottom: 1px solid var(--line); }
.list td { white-space: nowrap; }
.list { font-size: .85rem; }
.list td.long { white-space: normal; min-width: 11rem; max-width: 26rem; }
.wide { overflow-x: auto; }
.note { color: var(--dim); font-size: .85rem; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--dim); font-size: 11px; }
.tick { text-anchor: middle; } .lane { text-anchor: end; }
.chart + .note { margin: .2rem 0 0; }
.chart svg { min-width: 36rem; } .grid { stroke: var(--line); stroke-opacity: .5; }
.axis { stroke: var(--line); } .mark { fill: var(--mark); } .failed { fill: var(--fail); }
.area { fill: var(--mark); fill-opacity: .35; stroke: var(--mark); }
"""
