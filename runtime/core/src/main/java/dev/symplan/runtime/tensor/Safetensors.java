package dev.symplan.runtime.tensor;

import com.fasterxml.jackson.core.JsonFactory;
import com.google.common.collect.ImmutableBiMap;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.primitives.Longs;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.PathErrors;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.file.AtomicFile;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Files of named tensors in the safetensors format: the length of the header in 8 bytes, the header
 * in JSON, the tensors row-major one after another.
 */
public final class Safetensors {

  /** The maximum header size that the format's own reader allows. */
  private static final long MAX_HEADER = 100_000_000;

  private static final ImmutableBiMap<String, DType> DTYPES =
      ImmutableBiMap.<String, DType>builder()
          .put("F64", DType.F64)
          .put("F32", DType.F32)
          .put("F16", DType.F16)
          .put("BF16", DType.BF16)
          .put("F8_E4M3", DType.F8E4M3FN)
          .put("F8_E5M2", DType.F8E5M2)
          .put("I64", DType.I64)
          .put("I32", DType.I32)
          .put("I16", DType.I16)
          .put("I8", DType.I8)
          .put("U64", DType.U64)
          .put("U32", DType.U32)
          .put("U16", DType.U16)
          .put("U8", DType.U8)
          .put("BOOL", DType.BOOL)
          .put("C64", DType.C64)
          .buildOrThrow();

  private final Path file;

  private Safetensors(Path file) {
    this.file = file;
  }

  /**
   * {@return the tensors of a file, by name; their memory is the file's, read when touched}
   *
   * @throws CompileException when the file cannot be read or its header does not fit its data
   */
  public static ImmutableMap<String, HostTensor> read(Path file) {
    return new Safetensors(file).read();
  }

  private ImmutableMap<String, HostTensor> read() {
    if (Files.isDirectory(file)) {
      throw wrong(DiagnosticCode.UNREADABLE_FILE, "this is a directory", "");
    }
    MemorySegment all;
    try (var channel = FileChannel.open(file, StandardOpenOption.READ)) {
      all = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), Arena.ofAuto());
    } catch (NoSuchFileException e) {
      throw wrong(DiagnosticCode.UNREADABLE_FILE, "the file does not exist", "");
    } catch (IOException e) {
      throw wrong(DiagnosticCode.UNREADABLE_FILE, "cannot read it: " + e.getMessage(), "");
    }
    if (all.byteSize() < Long.BYTES) {
      throw wrong("it has %s, too few for a header".formatted(Units.count(all.byteSize(), "byte")));
    }
    long length = all.get(Elements.LONG, 0);
    if (length < 2 || length > MAX_HEADER || length > all.byteSize() - Long.BYTES) {
      throw wrong(
          "the length of its header is %s, but %s bytes are left; is the file truncated?"
              .formatted(Long.toUnsignedString(length), all.byteSize() - Long.BYTES));
    }
    var header = header(all.asSlice(Long.BYTES, length));
    var data = all.asSlice(Long.BYTES + length);
    var tensors = ImmutableMap.<String, HostTensor>builder();
    var ranges = new ArrayList<Range>();
    header
        .fields()
        .forEach(
            (name, field) -> {
              if (!name.equals("__metadata__")) {
                tensors.put(name, tensor(name, field, data, ranges));
              }
            });
    checkRanges(ranges, data.byteSize());
    return tensors.buildOrThrow();
  }

  private record Range(String name, long begin, long end) {}

  private static final class HeaderErrors extends PathErrors {
    HeaderErrors() {
      super(DiagnosticCode.BAD_TENSORS);
    }

    @Override
    protected CompileException error(Span at, String message, String hint) {
      return super.error(at, "its header: " + message, hint);
    }
  }

  private Json header(MemorySegment bytes) {
    var text = SourceReader.decode(file.toString(), bytes.toArray(ValueLayout.JAVA_BYTE));
    return Json.parse(text, new HeaderErrors());
  }

  private static HostTensor tensor(
      String name, Json field, MemorySegment data, List<Range> ranges) {
    var typeName = field.get("dtype").text();
    @Nullable DType dtype = DTYPES.get(typeName);
    if (dtype == null) {
      throw field.get("dtype").wrong("unknown dtype '%s'".formatted(typeName));
    }
    TensorType type;
    try {
      type = TensorType.contiguous(dtype, Longs.toArray(field.get("shape").list(Json::integer)));
    } catch (IllegalArgumentException e) {
      throw field.get("shape").wrong(String.valueOf(e.getMessage()));
    }
    var range = field.get("data_offsets").list(Json::integer);
    if (range.size() != 2
        || range.get(0) < 0
        || range.get(0) > range.get(1)
        || range.get(1) > data.byteSize()) {
      throw field.wrong(
          "it is at bytes %s of %s; is the file truncated?".formatted(range, data.byteSize()));
    }
    long begin = range.get(0);
    long bytes = range.get(1) - begin;
    if (bytes != type.bytes()) {
      throw field.wrong(
          "%s takes %s, but has %s".formatted(type, Units.count(type.bytes(), "byte"), bytes));
    }
    ranges.add(new Range(name, begin, range.get(1)));
    return new HostTensor(data.asSlice(begin, bytes), type);
  }

  private void checkRanges(List<Range> ranges, long size) {
    ranges.sort(Comparator.comparingLong(Range::begin).thenComparingLong(Range::end));
    long end = 0;
    for (var range : ranges) {
      if (range.begin() != end) {
        throw wrong(
            "tensor '%s' begins at byte %s, but the tensor before it ends at %s"
                .formatted(range.name(), range.begin(), end));
      }
      end = range.end();
    }
    if (end != size) {
      throw wrong("its tensors end at byte %s, but its data at %s".formatted(end, size));
    }
  }

  private CompileException wrong(String message) {
    return wrong(DiagnosticCode.BAD_TENSORS, message, "");
  }

  private CompileException wrong(DiagnosticCode code, String message, String hint) {
    return CompileException.ofFile(code, file, message, hint);
  }

  /** {@return whether the format can hold a type} */
  public static boolean canHold(DType dtype) {
    return DTYPES.containsValue(dtype);
  }

  /**
   * Writes tensors, whole or not at all; the same tensors give the same bytes.
   *
   * @throws CompileException when the file cannot be written
   */
  public static void write(Path file, Map<String, HostTensor> tensors) {
    var sorted = ImmutableSortedMap.copyOf(tensors);
    AtomicFile.write(file, to -> writeTo(to, sorted), "the tensors");
  }

  private static void writeTo(Path file, ImmutableSortedMap<String, HostTensor> tensors)
      throws IOException {
    var header = new ByteArrayOutputStream();
    long end = 0;
    try (var json = new JsonFactory().createGenerator(header)) {
      json.writeStartObject();
      for (var entry : tensors.entrySet()) {
        var type = entry.getValue().type();
        json.writeObjectFieldStart(entry.getKey());
        json.writeStringField(
            "dtype",
            Optional.ofNullable(DTYPES.inverse().get(type.dtype()))
                .orElseThrow(() -> new IOException("the format has no " + type.dtype())));
        json.writeArrayFieldStart("shape");
        for (long size : type.sizes().asList()) {
          json.writeNumber(size);
        }
        json.writeEndArray();
        json.writeArrayFieldStart("data_offsets");
        json.writeNumber(end);
        end += type.bytes();
        json.writeNumber(end);
        json.writeEndArray();
        json.writeEndObject();
      }
      json.writeEndObject();
    }
    while (header.size() % Long.BYTES != 0) {
      header.write(' ');
    }
    try (var channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      var length = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      writeAll(channel, length.putLong(header.size()).flip());
      writeAll(channel, ByteBuffer.wrap(header.toByteArray()));
      for (var tensor : tensors.values()) {
        writeTensor(channel, tensor.contiguous());
      }
    }
  }

  private static void writeTensor(FileChannel channel, HostTensor tensor) throws IOException {
    long bytes = tensor.type().bytes();
    for (long at = 0; at < bytes; at += Integer.MAX_VALUE / 2) {
      long part = Math.min(bytes - at, Integer.MAX_VALUE / 2);
      writeAll(channel, tensor.memory().asSlice(at, part).asByteBuffer());
    }
  }

  private static void writeAll(FileChannel channel, ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      channel.write(buffer);
    }
  }
}
