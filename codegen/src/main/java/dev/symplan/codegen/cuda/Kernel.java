package dev.symplan.codegen.cuda;

/**
 * A kernel's text.
 *
 * @param text CUDA C++ that includes nothing; its one kernel, {@code extern "C"}, is called {@link
 *     #ENTRY} and takes one struct of 8-byte words by value
 */
public record Kernel(String text) {

  public Kernel {
    text = CTypes.withConversions(text);
  }

  /** The name of each text's kernel. */
  public static final String ENTRY = "symplan_kernel";
}
