/** What this machine has and lacks for plans to run on its GPUs. */
@NullMarked
package dev.symplan.runtime.doctor;

import org.jspecify.annotations.NullMarked;
