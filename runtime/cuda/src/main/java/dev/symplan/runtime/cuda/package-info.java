/** Plans on the GPUs of one host, a thread for each. */
@NullMarked
package dev.symplan.runtime.cuda;

import org.jspecify.annotations.NullMarked;
