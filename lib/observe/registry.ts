/** Counters and histograms, and their text for Prometheus. The number of series is bounded, whatever happens. */

/** Most lines with a value that a registry ever writes. */
const MOST_SERIES = 1_200;

/** Takes the place of every label of what there is no room for. */
const OTHER = "other";

/** A number that only grows, by labels. */
export interface Counter {
  /** Adds to the series of these values, given in the order of the labels. */
  add(values: readonly string[], by?: number): void;
}

/** An amount that only grows, by labels; exact. */
export interface AmountCounter {
  add(values: readonly string[], by: bigint): void;
}

/** Observations in buckets, by labels. */
export interface Histogram {
  observe(values: readonly string[], value: number): void;
}

/** One value that is read when it is asked for. */
export interface Reading {
  labels?: Readonly<Record<string, string>>;
  /** A number, or the decimal text of one that is exact. */
  value: number | string;
}

/** Options of a family of series. */
export interface FamilyOptions {
  help: string;
  labels?: readonly string[];
}

/** Families of series, and their text. */
export interface Registry {
  counter(name: string, options: FamilyOptions): Counter;
  /** @param write an amount as a decimal number */
  amounts(name: string, options: FamilyOptions & { write: (amount: bigint) => string }): AmountCounter;
  /** @param buckets upper bounds, growing */
  histogram(name: string, options: FamilyOptions & { buckets: readonly number[] }): Histogram;
  /** Values that are read at each rendering: the first `most` of them. */
  read(
    name: string,
    options: FamilyOptions & { type: "gauge" | "counter"; most?: number; from: () => readonly Reading[] },
  ): void;
  /** Everything, in the text format 0.0.4. */
  render(): string;
}

/** Series whose first labels have the same values; those of the next label lead on. */
interface Branch<S> {
  series: S | undefined;
  readonly next: Map<string, Branch<S>>;
}

/**
 * Starts with nothing. Every family has room for one series of `other` from the start, which takes what the rest of the
 * room does not.
 */
export function createRegistry(most = MOST_SERIES): Registry {
  return new SeriesRegistry(most);
}

class SeriesRegistry implements Registry {
  readonly #most: number;
  readonly #families = new Map<string, () => string>();
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
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
    // Each bucket, the one without a bound, the sum and the count.
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
    { help, type, most: lines = 1, from }: FamilyOptions & {
      type: "gauge" | "counter";
      most?: number;
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

  /** @throws {RangeError} if a name is no name, is taken, or there is no room */
  #declare(name: string, { head, lines }: { head: string; lines: number }, body: () => string): void {
    if (!/^[a-z_][a-z0-9_]*$/.test(name)) throw new RangeError(`Cannot name a metric "${name}"`);
    if (this.#families.has(name)) throw new RangeError(`Cannot have two metrics "${name}"`);
    if (this.#taken + lines > this.#most) {
      throw new RangeError(`Cannot have another metric "${name}": there is no room`);
    }
    this.#taken += lines;
    this.#families.set(name, () => head + body());
  }

  /** Series by the values of their labels; `lines` is what one of them takes of the room. */
  #seriesOf<S>(labels: readonly string[], { lines, make }: { lines: number; make: (text: string) => S }) {
    const all: S[] = [];
    const root: Branch<S> = { series: undefined, next: new Map() };
    let rest: S | undefined;
    function insert(values: readonly string[]): S {
      const made = make(labelText(labels, values));
      all.push(made);
      let branch = root;
      for (const value of values) {
        const next: Branch<S> = branch.next.get(value) ?? { series: undefined, next: new Map() };
        branch.next.set(value, next);
        branch = next;
      }
      branch.series = made;
      return made;
    }

    const add = (values: readonly string[]): S => {
      // Its room was taken when the family was declared.
      const isOther = values.every((value) => value === OTHER);
      if (isOther || this.#taken + lines > this.#most) return rest ??= insert(labels.map(() => OTHER));
      this.#taken += lines;
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
