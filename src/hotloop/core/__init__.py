"""The nouns: frozen records and the contracts between layers. Standard library only."""
