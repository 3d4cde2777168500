package dev.symplan.runtime.launch;

import dev.symplan.ir.diag.Units;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * Frames over a channel, by a thread for each direction. Where there is nothing to say, each side
 * says that it is alive.
 */
final class Connection {

  /** The number of frames that a side sends while the other one waits. */
  private static final int BEATS = 10;

  /** How long the other side of a connection of the store may say nothing. */
  static final Duration SILENCE = Duration.ofSeconds(10);

  private final Channel channel;
  private final Duration silence;
  private final BlockingQueue<Frame> queue = new LinkedBlockingQueue<>();

  /** Frames that are not yet with the system. */
  private final AtomicInteger unsent = new AtomicInteger();

  private final Thread reader;
  private final Thread writer;

  /**
   * @param silence how long either side may say nothing
   * @param onFrame for what comes but signs of life, in its order
   * @param onEnd for the reason when nothing comes any more
   */
  Connection(
      Channel channel,
      Duration silence,
      String name,
      Consumer<Frame> onFrame,
      Consumer<String> onEnd) {
    this.channel = channel;
    this.silence = silence;
    this.reader =
        Thread.ofPlatform().daemon().name(name + "-in").unstarted(() -> read(onFrame, onEnd));
    this.writer = Thread.ofPlatform().daemon().name(name + "-out").unstarted(this::write);
  }

  void start() {
    reader.start();
    writer.start();
  }

  void send(Frame frame) {
    unsent.incrementAndGet();
    queue.add(frame);
  }

  boolean hasUnsent() {
    return unsent.get() > 0;
  }

  boolean isOpen() {
    return channel.isOpen();
  }

  private void read(Consumer<Frame> onFrame, Consumer<String> onEnd) {
    String reason;
    try {
      while (true) {
        var frame = channel.read();
        if (frame.kind() != Frame.Kind.PING) {
          onFrame.accept(frame);
        }
      }
    } catch (SocketTimeoutException e) {
      reason = "it has sent nothing for " + Units.duration(silence);
    } catch (IOException e) {
      reason = "its connection is lost";
    } catch (RuntimeException e) {
      reason = "it sent something invalid: " + e.getMessage();
    }
    close();
    onEnd.accept(reason);
  }

  private void write() {
    try {
      while (channel.isOpen()) {
        var next = queue.poll(silence.toMillis() / BEATS, TimeUnit.MILLISECONDS);
        var frame = next == null ? Frame.of(Frame.Kind.PING, 0) : next;
        channel.write(frame);
        if (next != null) {
          unsent.decrementAndGet();
        }
        if (frame.kind() == Frame.Kind.BYE) {
          channel.end();
          return;
        }
      }
    } catch (IOException e) {
      // The reader says so.
      close();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Says goodbye after all else, and waits a moment for that to be out. */
  void leave(Duration most) {
    send(Frame.of(Frame.Kind.BYE, 0));
    try {
      if (!writer.join(most)) {
        close();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  void close() {
    channel.close();
  }
}
