/**
 * The host backend: ranks are threads, arenas are off-heap memory.
 *
 * <p>The package has more than thirty classes because each family of ops is a class. Nothing else
 * sees them: {@link HostKernels} is their only way out.
 */
@NullMarked
package dev.symplan.runtime.host;

import org.jspecify.annotations.NullMarked;
