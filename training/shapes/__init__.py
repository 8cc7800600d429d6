"""Data that rehearsals make: captioned pictures of shapes with a judge, sentences of a grammar."""
