from tools.documents.markdown import *  # noqa: F403
from tools.documents.markdown import Block, blocks_of  # noqa: F401
