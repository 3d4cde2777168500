/** Parts shared by commands: options, inputs and outputs, exit codes. */
@NullMarked
package dev.symplan.cli.common;

import org.jspecify.annotations.NullMarked;
