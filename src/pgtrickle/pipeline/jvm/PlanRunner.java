package pgtrickle;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.ref.WeakReference;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.memory.UnifiedMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Computes cached plans in the driver: one call takes in the rows of several programs and returns all results.
 *
 * <p>Spark compiles this file at run time with Janino, the compiler that it uses for generated code. Janino knows
 * no lambdas and no inference of generic types, so there are none here.
 */
public final class PlanRunner {
    /** What became of a program; driver_execution.py has the same numbers. */
    private static final int INLINE = 0, IN_FILE = 1, FAILED = 2, CANCELED = 3, TOO_MUCH = 4;

    private static final int IDLE_SECONDS = 30;

    private final UnifiedMemoryManager memory;
    private final Properties settings;
    private final int mostInline;
    private final ThreadPoolExecutor threads;
    private final AtomicInteger plans = new AtomicInteger();
    private final AtomicLong tasks = new AtomicLong();
    private final Map kept = new ConcurrentHashMap();
    private final Map running = new ConcurrentHashMap();

    /** A result of more than `mostInline` bytes is written to a file. */
    public PlanRunner(SparkConf conf, Properties settings, int threads, int mostInline) {
        this.memory = UnifiedMemoryManager.apply(conf, 1);
        this.settings = settings;
        this.mostInline = mostInline;
        final ClassLoader loader = Thread.currentThread().getContextClassLoader();
        ThreadFactory factory = new ThreadFactory() {
            public Thread newThread(Runnable work) {
                Thread thread = new Thread(work, "pgtrickle program");
                thread.setDaemon(true);
                thread.setContextClassLoader(loader);
                return thread;
            }
        };
        this.threads = new ThreadPoolExecutor(
            threads, threads, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue(), factory);
        // nobody has to close this: idle threads end by themselves
        this.threads.allowCoreThreadTimeOut(true);
    }

    /** A plan, and the row in it that is overwritten with the inputs of each run. It lives as long as it is used. */
    public static final class Plan {
        final int number;
        final UnsafeRow row;
        final StructType types;
        final UnsafeProjection projection;
        final RDD rdd;

        Plan(int number, UnsafeRow row, StructType types, RDD rdd) {
            this.number = number;
            this.row = row;
            this.types = types;
            this.projection = UnsafeProjection.create(types);
            this.rdd = rdd;
        }

        public int number() {
            return number;
        }
    }

    /** Register a plan whose only partition computes the program; the caller keeps it alive. */
    public Plan register(UnsafeRow row, StructType types, RDD rdd) {
        for (Iterator each = kept.values().iterator(); each.hasNext();) {
            if (((WeakReference) each.next()).get() == null) {
                each.remove();
            }
        }
        Plan plan = new Plan(plans.incrementAndGet(), row, types, rdd);
        kept.put(Integer.valueOf(plan.number), new WeakReference(plan));
        return plan;
    }

    /** Run the programs in `message`; see driver_execution.py for the format. Large results go to `path` + number. */
    public byte[] run(byte[] message, String path, String tag) throws Exception {
        return run(new ByteArrayInputStream(message), path, tag);
    }

    /** The same, with the message in a file. */
    public byte[] runFile(String file, String path, String tag) throws Exception {
        InputStream stream = new FileInputStream(file);
        try {
            return run(stream, path, tag);
        } finally {
            stream.close();
        }
    }

    private byte[] run(InputStream message, String path, String tag) throws Exception {
        DataInputStream given = new DataInputStream(new java.io.BufferedInputStream(message));
        int count = given.readInt();
        List work = new ArrayList(count);
        for (int index = 0; index < count; index++) {
            int number = given.readInt();
            long most = given.readLong();
            int length = given.readInt();
            byte[] rows = null;
            if (length >= 0) {
                rows = new byte[length];
                given.readFully(rows);
            }
            Plan plan = (Plan) ((WeakReference) kept.get(Integer.valueOf(number))).get();
            work.add(new Program(plan, rows, most, path + index, tag));
        }
        if (count == 1) {
            ((Program) work.get(0)).run();
        } else {
            List started = new ArrayList(count);
            for (int index = 0; index < count; index++) {
                started.add(threads.submit((Runnable) work.get(index)));
            }
            for (int index = 0; index < count; index++) {
                ((Future) started.get(index)).get();
            }
        }
        ByteArrayOutputStream answer = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(answer);
        for (int index = 0; index < count; index++) {
            Program program = (Program) work.get(index);
            if (program.fatal != null) {
                throw program.fatal;
            }
            out.writeByte(program.status);
            out.writeInt(program.result.length);
            out.write(program.result);
        }
        return answer.toByteArray();
    }

    /** Cancel what runs under this tag, or everything. Operators stop when they next check for it. */
    public void interrupt(String tag) {
        for (Iterator each = running.values().iterator(); each.hasNext();) {
            Program program = (Program) each.next();
            if (tag == null || tag.equals(program.tag)) {
                program.context.markInterrupted("cancelled");
            }
        }
    }

    /** How many programs run now. */
    public int running() {
        return running.size();
    }

    /** The bytes of memory that operators hold now. */
    public long memoryUsed() {
        return memory.executionMemoryUsed();
    }

    /** One run of a plan. The operators get what a task would give them: memory, settings, and a context. */
    private final class Program implements Runnable {
        final Plan plan;
        final byte[] rows;
        final long most;
        final String path;
        final String tag;
        TaskContextImpl context;
        int status = FAILED;
        byte[] result = new byte[0];
        Error fatal;

        Program(Plan plan, byte[] rows, long most, String path, String tag) {
            this.plan = plan;
            this.rows = rows;
            this.most = most;
            this.path = path;
            this.tag = tag;
        }

        public void run() {
            try {
                if (rows != null) {
                    put();
                }
                compute();
            } catch (VirtualMachineError error) {
                fatal = error;
            } catch (Throwable error) {
                boolean isCanceled = context != null && context.isInterrupted();
                status = isCanceled ? CANCELED : FAILED;
                result = String.valueOf(error).getBytes(java.nio.charset.StandardCharsets.UTF_8);
            }
        }

        /** Overwrite the row of the plan. */
        private void put() throws Exception {
            scala.collection.Iterator batches =
                org.apache.spark.sql.execution.arrow.ArrowConverters$.MODULE$.getBatchesFromStream(
                    Channels.newChannel(new ByteArrayInputStream(rows)));
            scala.collection.Iterator found =
                org.apache.spark.sql.execution.arrow.ArrowConverters$.MODULE$.fromBatchIterator(
                    batches, plan.types, "UTC", false, false, null);
            plan.row.copyFrom(plan.projection.apply((InternalRow) found.next()));
            // the iterator frees its memory when it is asked at its end
            found.hasNext();
        }

        private void compute() throws Exception {
            long number = tasks.incrementAndGet();
            TaskMemoryManager pages = new TaskMemoryManager(memory, number);
            context = new TaskContextImpl(
                0, 0, 0, number, 0, 1, pages, settings, null, new TaskMetrics(), null,
                (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
            running.put(Long.valueOf(number), this);
            org.apache.spark.TaskContext$.MODULE$.setTaskContext(context);
            Results results = new Results();
            try {
                scala.collection.Iterator batches = plan.rdd.iterator(plan.rdd.partitions()[0], context);
                boolean fits = true;
                while (fits && batches.hasNext()) {
                    fits = results.add((byte[]) batches.next());
                }
                status = !fits ? TOO_MUCH : results.file == null ? INLINE : IN_FILE;
                result = fits && results.file == null ? results.small.toByteArray() : new byte[0];
            } finally {
                results.close(status == IN_FILE);
                running.remove(Long.valueOf(number));
                try {
                    context.markTaskCompleted((scala.Option) scala.None$.MODULE$);
                } finally {
                    org.apache.spark.TaskContext$.MODULE$.unset();
                    pages.cleanUpAllAllocatedMemory();
                }
            }
        }

        /** The batches of a result, each after its length: few bytes in memory, many in a file. */
        private final class Results {
            final ByteArrayOutputStream small = new ByteArrayOutputStream();
            DataOutputStream file;
            long size;

            /** Whether the result is still small enough for the caller. */
            boolean add(byte[] batch) throws Exception {
                size += batch.length;
                if (size > most) {
                    return false;
                }
                if (file == null && size > mostInline) {
                    OutputStream stream = new java.io.BufferedOutputStream(new FileOutputStream(path));
                    file = new DataOutputStream(stream);
                    small.writeTo(file);
                }
                DataOutputStream target = file != null ? file : new DataOutputStream(small);
                target.writeInt(batch.length);
                target.write(batch);
                return true;
            }

            void close(boolean isComplete) throws Exception {
                if (file != null) {
                    file.close();
                    if (!isComplete) {
                        new java.io.File(path).delete();
                    }
                }
            }
        }
    }
}
