"""Pictures to codes and back, drawn from captions, and chosen by CLIP."""
