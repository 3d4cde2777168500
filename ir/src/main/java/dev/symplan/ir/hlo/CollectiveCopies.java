package dev.symplan.ir.hlo;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.hlo.HloShape.Array;
import dev.symplan.ir.text.SourceReader;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The copies that XLA makes between its memory for collectives and other memory, in the text of a
 * module: those of a loop count once.
 *
 * @param count how many copies there are
 * @param bytes how many bytes they move
 */
public record CollectiveCopies(int count, long bytes) {

  /**
   * {@return the copies of a module}
   *
   * @throws CompileException when the file cannot be read or is malformed
   */
  public static CollectiveCopies of(Path file) {
    var module = HloReader.read(SourceReader.read(file));
    int count = 0;
    long bytes = 0;
    for (var computation : module.computations().values()) {
      Map<String, HloShape> shapes = new HashMap<>();
      for (var instruction : computation.instructions()) {
        shapes.put(instruction.name(), instruction.shape());
        var copied = copied(instruction, module, shapes);
        count += copied.isPresent() ? 1 : 0;
        bytes += copied.orElse(0L);
      }
    }
    return new CollectiveCopies(count, bytes);
  }

  private static Optional<Long> copied(
      HloInstruction instruction, HloModule module, Map<String, HloShape> shapes) {
    if (instruction.operands().size() != 1
        || !isCopy(instruction, module)
        || !(instruction.shape() instanceof Array to)
        || !(shapes.get(instruction.operands().getFirst()) instanceof Array from)
        || isForCollectives(to) == isForCollectives(from)) {
      return Optional.empty();
    }
    return Optional.of(to.tensor().storageBytes());
  }

  private static boolean isForCollectives(Array array) {
    return array.space() != 0 && array.space() != Array.HOST;
  }

  /** A copy, or a fusion of nothing else. */
  private static boolean isCopy(HloInstruction instruction, HloModule module) {
    if (!instruction.opcode().equals("fusion")) {
      return instruction.opcode().equals("copy");
    }
    var names = instruction.attributes().names("calls");
    @Nullable HloComputation called =
        names.size() == 1 ? module.computations().get(names.getFirst()) : null;
    return called != null
        && called.instructions().size() == 2
        && called.root().opcode().equals("copy");
  }
}
