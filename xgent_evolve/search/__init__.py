"""What a search is made of: versions of the text, what an optimizer sees, what it proposes."""
