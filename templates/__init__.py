"""The site's templates, and the contexts they are rendered with."""
