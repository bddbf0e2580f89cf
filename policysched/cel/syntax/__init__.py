"""From a selector's text to its syntax tree: tokens, the parser with ANTLR's error recovery, literals and macros.

Comes in: a text. Goes out: a tree whose nodes know their place, or the errors of the text, in cel-go's words.
`parser` has the rules of the grammar, `recovery` how it goes on after a mistake.
"""
