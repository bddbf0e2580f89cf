"""Programs that maintain the project: generated reference pages, drawings, checks of the documents."""
