"""`spotbatch report`: one self-contained HTML page about a job.

`figures` reads what the page shows, `charts` draws it as SVG, `page` writes it down. The page loads
nothing from anywhere, and all text of users and models in it is escaped.
"""

from jobs.report.figures import ReportFigures, report_figures
from jobs.report.page import report_page

__all__ = ["ReportFigures", "report_figures", "report_page"]
