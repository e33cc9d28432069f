/** Counters and histograms that are rendered in Prometheus format. The number of lines is bounded. */

/** Largest number of rendered lines with a value. */
const MAX_LINES = 1_200;

/** Label value of the series that collects everything beyond the bound. */
const OTHER = "other";

/** A counter with labels. */
export interface Counter {
  /** Adds to the series with these label values, in the order of the labels. `by` is 1 by default. */
  add(values: readonly string[], by?: number): void;
}

/** A counter of exact amounts, with labels. */
export interface AmountCounter {
  /** Adds an amount to the series with these label values. */
  add(values: readonly string[], by: bigint): void;
}

/** A histogram with labels. */
export interface Histogram {
  /** Adds a value to the series with these label values. */
  observe(values: readonly string[], value: number): void;
}

/** A value that is read at rendering. */
export interface Reading {
  labels?: Readonly<Record<string, string>>;
  /** A number, or an exact decimal string. */
  value: number | string;
}

/** Options of a metric. */
export interface FamilyOptions {
  help: string;
  /** Names of the labels; absent: none. */
  labels?: readonly string[];
}

/** The methods of a registry that declare metrics. */
export type MetricDeclarations = Pick<Registry, "counter" | "amounts" | "histogram" | "read">;

/** A node in the tree of series. Each level of the tree stands for a label. */
interface TreeNode<S> {
  /** The series with the label values on the path to this node; `undefined` unless it is a leaf. */
  series: S | undefined;
  /** Nodes by the value of the next label. */
  readonly children: Map<string, TreeNode<S>>;
}

/**
 * All metrics and their rendering. Each metric reserves the lines of a series `other`, which collects everything beyond
 * the bound.
 */
export class Registry {
  readonly #maxLines: number;
  /** Functions that render a metric, by its name. */
  readonly #families = new Map<string, () => string>();
  #reservedLines = 0;

  constructor(maxLines = MAX_LINES) {
    this.#maxLines = maxLines;
  }

  counter(name: string, { help, labels = [] }: FamilyOptions): Counter {
    const series = this.#seriesOf(labels, { lines: 1, make: (text) => ({ text, value: 0 }) });
    if (labels.length === 0) series.find([]);
    this.#declare(name, { head: headOf(name, help, "counter"), lines: 1 }, () => {
      let out = "";
      for (const { text, value } of series.all) out += `${name}${text} ${writeNumber(value)}\n`;
      return out;
    });
    return {
      add(values, by = 1) {
        series.find(values).value += by;
      },
    };
  }

  /** Declares a counter of amounts. @param options `write` formats an amount as a decimal number */
  amounts(
    name: string,
    { help, labels = [], write }: FamilyOptions & { write: (amount: bigint) => string },
  ): AmountCounter {
    const series = this.#seriesOf(labels, { lines: 1, make: (text) => ({ text, value: 0n }) });
    this.#declare(name, { head: headOf(name, help, "counter"), lines: 1 }, () => {
      let out = "";
      for (const { text, value } of series.all) out += `${name}${text} ${write(value)}\n`;
      return out;
    });
    return {
      add(values, by) {
        series.find(values).value += by;
      },
    };
  }

  /** Declares a histogram. @param options `buckets`: ascending upper bounds */
  histogram(name: string, { help, labels = [], buckets }: FamilyOptions & { buckets: readonly number[] }): Histogram {
    // One line per bucket, one for the unbounded bucket, the sum and the count.
    const lines = buckets.length + 3;
    const series = this.#seriesOf(labels, {
      lines,
      make: (text) => ({ text, counts: new Float64Array(buckets.length + 1), sum: 0, observed: 0 }),
    });
    this.#declare(name, { head: headOf(name, help, "histogram"), lines }, () => {
      let out = "";
      for (const { text, counts, sum, observed } of series.all) {
        let cumulative = 0;
        for (const [index, count] of counts.entries()) {
          cumulative += count;
          out += `${name}_bucket${withLabel(text, "le", writeNumber(buckets[index] ?? Infinity))} ${cumulative}\n`;
        }
        out += `${name}_sum${text} ${writeNumber(sum)}\n${name}_count${text} ${observed}\n`;
      }
      return out;
    });
    return {
      observe(values, value) {
        const histogram = series.find(values);
        let bucket = 0;
        while (bucket < buckets.length && value > (buckets[bucket] ?? Infinity)) bucket++;
        histogram.counts[bucket] = (histogram.counts[bucket] ?? 0) + 1;
        histogram.sum += value;
        histogram.observed++;
      },
    };
  }

  /** Declares values that are read at each rendering. Only the first `maxSeries` are shown; absent: one. */
  read(
    name: string,
    { help, type, maxSeries = 1, from }: FamilyOptions & {
      type: "gauge" | "counter";
      maxSeries?: number;
      from: () => readonly Reading[];
    },
  ): void {
    this.#declare(name, { head: headOf(name, help, type), lines: maxSeries }, () => {
      let out = "";
      for (const { labels = {}, value } of from().slice(0, maxSeries)) {
        out += `${name}${labelText(Object.keys(labels), Object.values(labels))} ${
          typeof value === "string" ? value : writeNumber(value)
        }\n`;
      }
      return out;
    });
  }

  /** Renders everything in the text format 0.0.4. */
  render(): string {
    let out = "";
    for (const write of this.#families.values()) out += write();
    return out;
  }

  /** Declares a metric. @throws {RangeError} if its name is invalid or used, or if there are too many lines */
  #declare(name: string, { head, lines }: { head: string; lines: number }, body: () => string): void {
    if (!/^[a-z_][a-z0-9_]*$/.test(name)) throw new RangeError(`Cannot name a metric "${name}"`);
    if (this.#families.has(name)) throw new RangeError(`Cannot have two metrics "${name}"`);
    if (this.#reservedLines + lines > this.#maxLines) {
      throw new RangeError(`Cannot add metric "${name}": too many series`);
    }
    this.#reservedLines += lines;
    this.#families.set(name, () => head + body());
  }

  /** Creates the collection of the series of a metric. @param options `lines`: rendered lines of each series */
  #seriesOf<S>(labels: readonly string[], { lines, make }: { lines: number; make: (text: string) => S }) {
    const all: S[] = [];
    const root: TreeNode<S> = { series: undefined, children: new Map() };
    let other: S | undefined;
    function insert(values: readonly string[]): S {
      const series = make(labelText(labels, values));
      all.push(series);
      let node = root;
      for (const value of values) {
        const child: TreeNode<S> = node.children.get(value) ?? { series: undefined, children: new Map() };
        node.children.set(value, child);
        node = child;
      }
      node.series = series;
      return series;
    }

    const add = (values: readonly string[]): S => {
      // The lines of the series `other` were reserved at the declaration.
      const isOther = values.every((value) => value === OTHER);
      if (isOther || this.#reservedLines + lines > this.#maxLines) return other ??= insert(labels.map(() => OTHER));
      this.#reservedLines += lines;
      return insert(values);
    };

    return {
      all,
      find(values: readonly string[]): S {
        let node: TreeNode<S> | undefined = root;
        for (const value of values) node = node?.children.get(value);
        return node?.series ?? add(values);
      },
    };
  }
}

function headOf(name: string, help: string, type: string): string {
  const text = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return `# HELP ${name} ${text}\n# TYPE ${name} ${type}\n`;
}

function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return "";
  return `{${names.map((name, at) => `${name}="${escapeValue(values[at] ?? "")}"`).join(",")}}`;
}

function withLabel(text: string, name: string, value: string): string {
  return text === "" ? `{${name}="${value}"}` : `${text.slice(0, -1)},${name}="${value}"}`;
}

function escapeValue(value: string): string {
  return value.toWellFormed().replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function writeNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}
