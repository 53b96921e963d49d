// NVRTC knows size_t and ptrdiff_t by itself.
#pragma once
#ifndef NULL
#define NULL 0
#endif
