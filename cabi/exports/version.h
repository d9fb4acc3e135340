/* Set while the library is loaded, where Go's runtime cannot be started: the
   initializer of packaging/musl finds that out. */
extern int loaderx_runtime_missing;
