package dev.symplan.codegen.cuda;

/**
 * A kernel's text.
 *
 * @param text CUDA C++ that includes nothing; its one kernel, {@code extern "C"}, is called {@link
 *     #ENTRY} and takes one struct of 8-byte words by value
 */
public record Kernel(String text) {

  /** The name of each text's kernel. */
  public static final String ENTRY = "symplan_kernel";

  /** A statement that returns when the launches before have ended, and their writes are visible. */
  static final String AWAIT_BEFORE = "await_launches_before();";

  private static final String BEGIN = ENTRY + "(const __grid_constant__ Args args) {\n";

  private static final String ARGS = "struct Args {\n";
  private static final String END_ARGS = "\n};\n";

  /**
   * Both instructions do nothing in other launches than {@link DependentLaunches dependent} ones.
   */
  private static final String ORDER =
      """
      __device__ __forceinline__ void await_launches_before() {
      #if __CUDA_ARCH__ >= 900
        asm volatile("griddepcontrol.wait;" ::: "memory");
      #endif
      }

      __device__ __forceinline__ void allow_next_launch() {
      #if __CUDA_ARCH__ >= 900
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
      #endif
      }
      """;

  public Kernel {
    text = CTypes.withConversions(text);
    if (text.contains(AWAIT_BEFORE) && !text.contains(ORDER)) {
      text = ORDER + "\n" + text;
    }
  }

  /**
   * {@return the same kernel, all of whose threads wait for the launches before it, and then allow
   * the next one to begin}
   */
  Kernel inOrder() {
    if (!text.contains(BEGIN)) {
      throw new IllegalStateException("a kernel that begins in another way: " + text);
    }
    return new Kernel(
        text.replace(
            BEGIN,
            BEGIN
                + (text.contains(AWAIT_BEFORE) ? "" : "  " + AWAIT_BEFORE + "\n")
                + "  allow_next_launch();\n"));
  }

  /** {@return whether this can be {@linkplain #withOthers with other blocks}} */
  boolean takesOthers() {
    return text.contains(BEGIN) && text.contains(ARGS);
  }

  /**
   * {@return the same kernel with other blocks behind its own, which do something else}
   *
   * @param blocks its own: for their code, they are the whole grid
   * @param members declarations of more arguments, behind the others
   * @param statements what the others do, which are numbered by {@code block}
   */
  Kernel withOthers(int blocks, String members, String statements) {
    int args = text.indexOf(END_ARGS, text.indexOf(ARGS)) + 1;
    int behind = args + END_ARGS.length() - 1;
    return new Kernel(
        text.substring(0, args).replace("gridDim.x", blocks + "u")
            + members
            + text.substring(args, behind)
            + """

            __device__ __forceinline__ void do_others(const Args& args, unsigned block) {
            %s}
            """
                .formatted(statements)
            + text.substring(behind)
                .replace("gridDim.x", blocks + "u")
                .replace(
                    BEGIN,
                    BEGIN
                        + """
                          if (blockIdx.x >= %1$s) {
                            do_others(args, blockIdx.x - %1$s);
                            return;
                          }
                        """
                            .formatted(blocks)));
  }
}
