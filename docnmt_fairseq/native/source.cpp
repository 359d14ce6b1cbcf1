// From which sources this library was built: Python does not use one that is out of date.

extern "C" __attribute__((visibility("default"))) const char* kernel_source();

extern "C" const char* kernel_source() { return SOURCE_HASH; }
