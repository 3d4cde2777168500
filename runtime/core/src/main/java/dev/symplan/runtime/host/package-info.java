/** The host backend: ranks are threads, arenas are off-heap memory. */
@NullMarked
package dev.symplan.runtime.host;

import org.jspecify.annotations.NullMarked;
