"""The formulas, one topic a file; a file dropped in here is registered by being here."""
