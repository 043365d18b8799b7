"""What a report means: padding, checks between its figures, the verdict, where it would fit."""
