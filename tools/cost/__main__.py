from tools.cost.write import PAGE, written

PAGE.write_text(written(), "utf-8")
