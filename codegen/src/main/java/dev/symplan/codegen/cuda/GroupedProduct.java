package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.planner.machine.Alignment;
import java.util.List;

/**
 * Products of groups, as experts have them: the host does not know where a group ends, as that is
 * in memory of the GPU. Ends that descend, or lie beyond the tensor, end the kernel with an error
 * before it reads anything else.
 *
 * @param form which dimension the groups share
 * @param left rows × inner; a matrix for each group in {@link Form#COLUMNS}
 * @param right inner × columns; a matrix for each group in {@link Form#ROWS}
 * @param ends where each group ends, in i32
 * @param result rows × columns; a matrix for each group in {@link Form#INNER}
 */
record GroupedProduct(
    Form form, TensorRef left, TensorRef right, TensorRef ends, TensorRef result) {

  /** The dimension that groups share; what is behind the last group is 0. */
  enum Form {
    ROWS,
    COLUMNS,
    INNER
  }

  static GroupedProduct of(OpArguments arguments) {
    var left = arguments.tensor("self");
    var right = arguments.tensor("mat2");
    var form =
        right.type().rank() == 3 ? Form.ROWS : left.type().rank() == 3 ? Form.COLUMNS : Form.INNER;
    return new GroupedProduct(form, left, right, arguments.tensor("offs"), arguments.result());
  }

  long groups() {
    return ends.type().size(0);
  }

  long rows() {
    return result.type().size(result.type().rank() - 2);
  }

  long columns() {
    return result.type().size(result.type().rank() - 1);
  }

  long inner() {
    return left.type().size(left.type().rank() - 1);
  }

  /** {@return the size of the dimension that groups share} */
  long shared() {
    return switch (form) {
      case ROWS -> rows();
      case COLUMNS -> columns();
      case INNER -> inner();
    };
  }

  /** {@return elements from one index to the next, of the dimension so many before the last} */
  static long stride(TensorRef ref, int fromLast) {
    return ref.type().stride(ref.type().rank() - 1 - fromLast);
  }

  /** {@return elements from one group's matrix to the next; 0 where all groups share it} */
  static long groupStride(TensorRef ref) {
    return ref.type().rank() == 3 ? ref.type().stride(0) : 0;
  }

  boolean isLeftByInner() {
    return stride(left, 0) == 1;
  }

  boolean isRightByInner() {
    return stride(right, 1) == 1;
  }

  /**
   * {@return the step that computes it}
   *
   * <p>Tensor cores take 16-bit floats whose rows or columns are side by side and begin at
   * multiples of 16 bytes. Others are computed one by one.
   */
  DeviceStep step(int rank, OpArguments arguments) {
    List.of(left, right, result).forEach(arguments::checkComputes);
    if (!isForTensorCores()) {
      return plain(rank, arguments);
    }
    var launch = GroupedKernel.launch(rank, arguments, this);
    return HopperGroupedKernel.suits(this)
        ? HopperGroupedKernel.launch(rank, arguments, this, launch)
        : launch;
  }

  private boolean isForTensorCores() {
    var dtype = left.type().dtype();
    var to = result.type().dtype();
    return (dtype == DType.BF16 || dtype == DType.F16)
        && (to == DType.BF16 || to == DType.F16 || to == DType.F32)
        && hasAlignedLines(left)
        && hasAlignedLines(right)
        // A group may begin at any inner index, which is then the first of a line.
        && (form != Form.INNER || !isLeftByInner() && !isRightByInner())
        && GroupedKernel.blocks(this) <= GroupedKernel.MAX_BLOCKS;
  }

  private static boolean hasAlignedLines(TensorRef ref) {
    long unit = Alignment.VECTOR / ref.type().dtype().bytes();
    long near = stride(ref, 0) == 1 ? stride(ref, 0) : stride(ref, 1);
    long far = stride(ref, 0) == 1 ? stride(ref, 1) : stride(ref, 0);
    return near == 1
        && far % unit == 0
        && groupStride(ref) % unit == 0
        && new Address(0, ref.arena(), ref.index(), ref.offset()).isVectorAligned();
  }

  /** Each element by itself. */
  private DeviceStep plain(int rank, OpArguments arguments) {
    var kernel = new PositionKernel(rank, result.type().sizes());
    var indices = kernel.indices();
    var type = CTypes.computed(result.type().dtype());
    var row = indices.get(indices.size() - 2);
    var column = indices.getLast();
    kernel.line("long long group = 0, before = 0, from = 0, to = %s;".formatted(inner()));
    kernel.line("for (long long g = 0; g < %s; g++) {".formatted(groups()));
    kernel.line("  long long end = %s;".formatted(kernel.value(ends, ImmutableList.of("g"))));
    kernel.line("  if (end < before || end > %s) {\n    __trap();\n  }".formatted(shared()));
    kernel.line(
        switch (form) {
          case ROWS -> "  group += %s >= end;".formatted(row);
          case COLUMNS -> "  group += %s >= end;".formatted(column);
          case INNER ->
              "  if (g == %s) {\n    group = g;\n    from = before;\n    to = end;\n  }"
                  .formatted(indices.getFirst());
        });
    kernel.line("  before = end;");
    kernel.line("}");
    kernel.line("%s sum = 0;".formatted(type));
    kernel.line("for (long long k = from; k < to && group < %s; k++) {".formatted(groups()));
    kernel.line(
        "  sum += (%s)%s * (%s)%s;"
            .formatted(
                type,
                kernel.value(left, ofGroup(left, row, "k")),
                type,
                kernel.value(right, ofGroup(right, "k", column))));
    kernel.line("}");
    kernel.set(result, indices, "sum");
    return kernel.build(arguments.op().stream(), arguments.op().name());
  }

  private static List<String> ofGroup(TensorRef ref, String row, String column) {
    return ref.type().rank() == 3 ? List.of("group", row, column) : List.of(row, column);
  }
}
