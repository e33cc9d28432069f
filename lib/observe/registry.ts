/** Counters and histograms in Prometheus format. The number of series is bounded. */

/** Most lines with a value. */
const MAX_SERIES = 1_200;

/** Label value of all series beyond the bound. */
const OTHER = "other";

/** A counter with labels. */
export interface Counter {
  /** Adds to the series with these label values, given in the order of the labels. */
  add(values: readonly string[], by?: number): void;
}

/** A counter of exact amounts, with labels. */
export interface AmountCounter {
  add(values: readonly string[], by: bigint): void;
}

/** A histogram with labels. */
export interface Histogram {
  observe(values: readonly string[], value: number): void;
}

/** A value read at rendering. */
export interface Reading {
  labels?: Readonly<Record<string, string>>;
  /** A number, or an exact decimal text. */
  value: number | string;
}

/** Options of a metric. */
export interface FamilyOptions {
  help: string;
  labels?: readonly string[];
}

/** All metrics and their rendering. */
export interface Registry {
  counter(name: string, options: FamilyOptions): Counter;
  /** Declares a counter of amounts. `write` formats an amount as a decimal number */
  amounts(name: string, options: FamilyOptions & { write: (amount: bigint) => string }): AmountCounter;
  /** Declares a histogram. `buckets` are ascending upper bounds. */
  histogram(name: string, options: FamilyOptions & { buckets: readonly number[] }): Histogram;
  /** Declares values read at each rendering: the first `maxSeries` of them. */
  read(
    name: string,
    options: FamilyOptions & { type: "gauge" | "counter"; maxSeries?: number; from: () => readonly Reading[] },
  ): void;
  /** Renders everything in the text format 0.0.4. */
  render(): string;
}

/** Series whose first labels have the same values, by the value of the next label. */
interface Branch<S> {
  series: S | undefined;
  readonly next: Map<string, Branch<S>>;
}

/** Creates an empty registry. Each metric reserves one series `other`, which collects everything beyond the bound. */
export function createRegistry(maxSeries = MAX_SERIES): Registry {
  return new SeriesRegistry(maxSeries);
}

class SeriesRegistry implements Registry {
  readonly #maxSeries: number;
  readonly #families = new Map<string, () => string>();
  #reserved = 0;

  constructor(maxSeries: number) {
    this.#maxSeries = maxSeries;
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
        let below = 0;
        for (const [at, count] of counts.entries()) {
          below += count;
          out += `${name}_bucket${withLabel(text, "le", boundText(buckets[at]))} ${below}\n`;
        }
        out += `${name}_sum${text} ${writeNumber(sum)}\n${name}_count${text} ${observed}\n`;
      }
      return out;
    });
    return {
      observe(values, value) {
        const found = series.find(values);
        let at = 0;
        while (at < buckets.length && value > (buckets[at] ?? Infinity)) at++;
        found.counts[at] = (found.counts[at] ?? 0) + 1;
        found.sum += value;
        found.observed++;
      },
    };
  }

  read(
    name: string,
    { help, type, maxSeries: lines = 1, from }: FamilyOptions & {
      type: "gauge" | "counter";
      maxSeries?: number;
      from: () => readonly Reading[];
    },
  ): void {
    this.#declare(name, { head: headOf(name, help, type), lines }, () => {
      let out = "";
      for (const { labels = {}, value } of from().slice(0, lines)) {
        out += `${name}${labelText(Object.keys(labels), Object.values(labels))} ${
          typeof value === "string" ? value : writeNumber(value)
        }\n`;
      }
      return out;
    });
  }

  render(): string {
    let out = "";
    for (const write of this.#families.values()) out += write();
    return out;
  }

  /** Declares a metric. @throws {RangeError} for an invalid or used name, or beyond the bound */
  #declare(name: string, { head, lines }: { head: string; lines: number }, body: () => string): void {
    if (!/^[a-z_][a-z0-9_]*$/.test(name)) throw new RangeError(`Cannot name a metric "${name}"`);
    if (this.#families.has(name)) throw new RangeError(`Cannot have two metrics "${name}"`);
    if (this.#reserved + lines > this.#maxSeries) {
      throw new RangeError(`Cannot add metric "${name}": too many series`);
    }
    this.#reserved += lines;
    this.#families.set(name, () => head + body());
  }

  /** Series by label values; `lines` is the number of lines per series. */
  #seriesOf<S>(labels: readonly string[], { lines, make }: { lines: number; make: (text: string) => S }) {
    const all: S[] = [];
    const root: Branch<S> = { series: undefined, next: new Map() };
    let rest: S | undefined;
    function insert(values: readonly string[]): S {
      const created = make(labelText(labels, values));
      all.push(created);
      let branch = root;
      for (const value of values) {
        const next: Branch<S> = branch.next.get(value) ?? { series: undefined, next: new Map() };
        branch.next.set(value, next);
        branch = next;
      }
      branch.series = created;
      return created;
    }

    const add = (values: readonly string[]): S => {
      // Its lines were reserved at the declaration.
      const isOther = values.every((value) => value === OTHER);
      if (isOther || this.#reserved + lines > this.#maxSeries) return rest ??= insert(labels.map(() => OTHER));
      this.#reserved += lines;
      return insert(values);
    };

    return {
      all,
      find(values: readonly string[]): S {
        let branch: Branch<S> | undefined = root;
        for (const value of values) branch = branch?.next.get(value);
        return branch?.series ?? add(values);
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

function boundText(bound: number | undefined): string {
  return bound === undefined ? "+Inf" : writeNumber(bound);
}

function writeNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}
