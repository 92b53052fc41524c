"""The kinds of number a formula is run on: plain numbers, arrays, units and symbols."""
