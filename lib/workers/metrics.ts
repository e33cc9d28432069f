/** The metrics of several isolates as those of one process. */

/** Gauges of which the greatest is told: they mean the same in every isolate, or the worst of them counts. */
const MOST = /(?:_version|_state|_seconds|_info|_journal_entries)$|^process_/;

/** Gauges of which the least is told: 1 while all is well. */
const LEAST = /_(?:healthy|up)$/;

/** A family of series in the text format of Prometheus. */
interface Family {
  /** The lines of its help and its type. */
  head: string;
  type: string;
  /** Values as they are written, by name and labels. */
  values: Map<string, string>;
}

/**
 * Adds texts of the format 0.0.4 up: counters and histograms exactly as they are written, gauges by their names. What one
 * isolate does not have is not missing in the sum.
 */
export function sumMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const text of texts) addText(families, text);
  return [...families.values()].map(({ head, values }) =>
    head + [...values].map(([series, value]) => `${series} ${value}\n`).join("")
  ).join("");
}

/** What only grows: the counters and histograms of a text, without its gauges. */
export function countersOf(text: string): string {
  const families = new Map<string, Family>();
  addText(families, text);
  const growing = [...families].filter(([, { type }]) => type !== "gauge");
  return growing.map(([, { head, values }]) =>
    head + [...values].map(([series, value]) => `${series} ${value}\n`).join("")
  ).join("");
}

function addText(families: Map<string, Family>, text: string): void {
  let name = "";
  let family: Family | undefined;
  let help = "";
  for (const line of text.split("\n")) {
    if (line.startsWith("# HELP ")) help = `${line}\n`;
    else if (line.startsWith("# TYPE ")) {
      const [, , of = "", type = ""] = line.split(" ");
      name = of;
      family = families.get(name);
      if (family === undefined) families.set(name, family = { head: `${help}${line}\n`, type, values: new Map() });
    } else if (line !== "" && family !== undefined) {
      const at = line.lastIndexOf(" ");
      const series = line.slice(0, at);
      const value = line.slice(at + 1);
      const before = family.values.get(series);
      family.values.set(series, before === undefined ? value : join([before, value], { name, type: family.type }));
    }
  }
}

function join([a, b]: [string, string], { name, type }: { name: string; type: string }): string {
  if (type === "gauge" && MOST.test(name)) return Number(b) > Number(a) ? b : a;
  if (type === "gauge" && LEAST.test(name)) return Number(b) < Number(a) ? b : a;
  return addDecimals(a, b);
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;

/** Amounts of money are among them: plain decimals are added digit by digit. */
function addDecimals(a: string, b: string): string {
  const [one, other] = [DECIMAL.exec(a), DECIMAL.exec(b)];
  if (one === null || other === null) return String(Number(a) + Number(b));
  const places = Math.max(one[3]?.length ?? 0, other[3]?.length ?? 0);
  const units = ([, sign = "", whole = "", part = ""]: RegExpExecArray) =>
    BigInt(sign + whole + part.padEnd(places, "0"));
  const sum = units(one) + units(other);
  const digits = String(sum < 0n ? -sum : sum).padStart(places + 1, "0");
  const fraction = digits.slice(digits.length - places).replace(/0+$/, "");
  const whole = digits.slice(0, digits.length - places);
  return `${sum < 0n ? "-" : ""}${whole}${places > 0 && fraction !== "" ? `.${fraction}` : ""}`;
}
