/* The one function of bcryptprimitives.dll that Go needs, for versions of wine
   that lack it. It is built without a C library and its headers. */

/* RtlGenRandom, of advapi32. */
__declspec(dllimport) unsigned char SystemFunction036(void *buffer, unsigned long size);

int DllMainCRTStartup(void *own, unsigned long reason, void *reserved);

int DllMainCRTStartup(void *own, unsigned long reason, void *reserved) {
    (void)own;
    (void)reason;
    (void)reserved;
    return 1;
}

__declspec(dllexport) int ProcessPrng(unsigned char *buffer, unsigned long long size) {
    return SystemFunction036(buffer, (unsigned long)size);
}
