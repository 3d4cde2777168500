/**
 * The host backend: ranks are threads, arenas are off-heap memory.
 *
 * <p>The package has more than thirty classes because each family of ops is a class. Other packages
 * see only {@link HostKernels}.
 */
@NullMarked
package dev.symplan.runtime.host;

import org.jspecify.annotations.NullMarked;
