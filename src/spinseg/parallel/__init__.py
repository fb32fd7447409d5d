"""Work that may be spread over processes or machines, interrupted and resumed."""
