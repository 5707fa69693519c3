"""For words.test: it was told."""

told = "# told"  # those
# of a name
