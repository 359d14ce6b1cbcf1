// From which sources this library was built: Python does not use one that is out of date.

#include "api.h"

extern "C" const char* kernel_source() { return SOURCE_HASH; }
