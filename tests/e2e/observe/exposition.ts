/** A strict reader of Prometheus's text format 0.0.4: whatever is not exactly as the format has it is an error. */

/** One line with a value. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  /** As it is written. */
  value: string;
}

/** A metric and all its lines. */
export interface Family {
  name: string;
  type: string;
  help: string;
  samples: Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const VALUE = /^(?:[+-]Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;

/** Reads a text. @throws {SyntaxError} for anything that the format does not have */
export function readExposition(text: string): Map<string, Family> {
  if (!text.endsWith("\n")) throw new SyntaxError("The last line has no end");
  const families = new Map<string, Family>();
  let family: Family | undefined;
  let help: { name: string; text: string } | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    const [, helpName, helpText] = /^# HELP (\S+) (.+)$/.exec(line) ?? [];
    const [, typeName, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (helpName !== undefined) {
      help = { name: helpName, text: helpText ?? "" };
    } else if (typeName !== undefined) {
      if (help?.name !== typeName || !NAME.test(typeName)) throw new SyntaxError(`No HELP before: ${line}`);
      if (families.has(typeName)) throw new SyntaxError(`Twice: ${line}`);
      family = { name: typeName, type: type ?? "", help: help.text, samples: [] };
      families.set(typeName, family);
    } else {
      const sample = readSample(line);
      const base = family?.type === "histogram" ? sample.name.replace(/_(?:bucket|sum|count)$/, "") : sample.name;
      if (base !== family?.name) throw new SyntaxError(`Not of the family before: ${line}`);
      family.samples.push(sample);
    }
  }
  return families;
}

function readSample(line: string): Sample {
  const [, name = "", inside, value = ""] = /^([^\s{]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (!NAME.test(name) || !VALUE.test(value)) throw new SyntaxError(`No sample: ${line}`);
  return { name, labels: inside === undefined ? {} : readLabels(inside), value };
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const pattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
  for (let at = 0; at < text.length; at = pattern.lastIndex) {
    pattern.lastIndex = at;
    const [, name, value] = pattern.exec(text) ?? [];
    if (name === undefined || value === undefined) throw new SyntaxError(`No labels: ${text}`);
    if (Object.hasOwn(labels, name)) throw new SyntaxError(`A label twice: ${text}`);
    labels[name] = value.replace(/\\(.)/g, (_, c) => c === "n" ? "\n" : c);
  }
  return labels;
}

/** Violations of the rules of `promtool check metrics` and of the naming conventions. */
export function lint(families: ReadonlyMap<string, Family>): string[] {
  const problems: string[] = [];
  for (const { name, type, help, samples } of families.values()) {
    if (type === "counter" && !name.endsWith("_total")) problems.push(`${name}: a counter without _total`);
    if (type !== "counter" && name.endsWith("_total")) problems.push(`${name}: _total, and no counter`);
    if (/_(?:ms|milliseconds|minutes|hours|kb|mb|kilobytes|percent)(?:_|$)/.test(name)) {
      problems.push(`${name}: no base unit`);
    }
    if (!/[.]$/.test(help)) problems.push(`${name}: no help`);
    if (new Set(samples.map(({ name, labels }) => JSON.stringify([name, labels]))).size !== samples.length) {
      problems.push(`${name}: a series twice`);
    }
    const keys = new Set(samples.map(({ labels }) => Object.keys(labels).filter((key) => key !== "le").join()));
    if (keys.size > 1) problems.push(`${name}: labels differ`);
    if (type === "histogram") problems.push(...lintHistogram(name, samples));
    if (type === "counter" && samples.some(({ value }) => value.startsWith("-"))) problems.push(`${name}: below 0`);
  }
  return problems;
}

function lintHistogram(name: string, samples: readonly Sample[]): string[] {
  const problems: string[] = [];
  const groups = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels;
    const key = JSON.stringify(labels);
    groups.set(key, [...groups.get(key) ?? [], sample]);
  }
  for (const group of groups.values()) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => Number((labels.le ?? "").replace("+Inf", "Infinity")));
    const counts = buckets.map(({ value }) => Number(value));
    const grows = (list: number[]) => list.every((value, at) => at === 0 || value >= (list[at - 1] ?? 0));
    if (!grows(bounds) || bounds.at(-1) !== Infinity || new Set(bounds).size !== bounds.length) {
      problems.push(`${name}: bounds`);
    }
    const count = group.find((sample) => sample.name === `${name}_count`);
    if (!grows(counts) || counts.at(-1) !== Number(count?.value)) problems.push(`${name}: counts`);
    if (group.filter((sample) => sample.name === `${name}_sum`).length !== 1) problems.push(`${name}: no sum`);
  }
  return problems;
}

/** Value of the series with this name and exactly these labels; `undefined` if absent. */
export function valueOf(text: string, name: string, labels: Record<string, string> = {}): string | undefined {
  const wanted = JSON.stringify(Object.entries(labels).sort());
  for (const { samples } of readExposition(text).values()) {
    for (const sample of samples) {
      if (sample.name === name && JSON.stringify(Object.entries(sample.labels).sort()) === wanted) return sample.value;
    }
  }
  return undefined;
}
