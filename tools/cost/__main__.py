from tools.cost import limits
from tools.cost.write import PAGE, read, written

PAGE.write_text(written(), "utf-8")
limits.PAGE.write_text(limits.written(*read()), "utf-8")
