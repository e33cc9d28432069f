/** `models`: shows the catalog, and how the configuration differs from it or from a public price list. */
import { listDifferences, type ListedDifference, matchModels } from "../catalog/price_differences.ts";
import { type ListedModel, listSnapshot, readPriceList } from "../catalog/price_lists.ts";
import { type CatalogModel, type CatalogSnapshot, loadCatalog } from "../catalog/snapshot.ts";
import { importList } from "../catalog/import_list.ts";
import { type Config, ConfigError } from "../config.ts";
import { messageOf } from "../errors.ts";
import { perMillion } from "../billing/money.ts";
import { isObject, JSON_LIMITS, parseJson } from "../json/mod.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import type { CommandName } from "./commands.ts";
import { counted, jsonText, writeErr, writeOut } from "./output.ts";
import { tableText } from "./table.ts";

/** Names of the commands. */
export type ModelsCommand = Extract<CommandName, `models ${string}`>;

/** Runs one of the commands. Returns the exit code: 1 if the configuration differs or a model is unknown. */
export async function models(
  command: ModelsCommand,
  { config, operand, switches, values }: Pick<Invocation, "operand" | "switches" | "values"> & { config: Config },
): Promise<number> {
  const isJson = switches.has("json");
  const snapshot = await loadCatalog(config.catalog, (path) => Deno.readTextFile(path)).catch((error) => {
    throw error instanceof RangeError ? new ConfigError([`catalog: ${error.message}`]) : error;
  });
  switch (command) {
    case "models import": {
      if (values.only !== undefined && !switches.has("catalog")) {
        throw new UsageError("Cannot use --only without --catalog");
      }
      const list = await readList(operand);
      if (!switches.has("catalog")) return compare(config, list, { isJson, name: operand });
      const { mtime } = await Deno.stat(operand);
      const date = (mtime ?? new Date()).toISOString().slice(0, 10);
      return printCatalog(list, snapshot, { source: operand, date, only: values.only?.split(",") ?? [] });
    }
    case "models list":
      return list(snapshot, { config, isJson });
    case "models show":
      return show(snapshot, operand);
    case "models diff":
      return compare(config, listSnapshot(snapshot), { isJson, name: `the catalog of ${snapshot.date}` });
  }
}

function list(snapshot: CatalogSnapshot, { config, isJson }: { config: Config; isJson: boolean }): number {
  if (isJson) writeOut(jsonText(snapshot));
  else {
    const configured = new Set(matchModels(config, listSnapshot(snapshot)).map(({ listed }) => nameOf(listed)));
    const header = ["MODEL", "VENDOR", "CONTEXT", "OUTPUT", "PROMPT", "COMPLETION", "FACTS OF", "CONFIGURED"];
    const rows = snapshot.models.map((model) => [...cellsOf(model), configured.has(nameOf(model)) ? "yes" : "no"]);
    writeOut(tableText([header, ...rows], { right: [2, 3, 4, 5] }));
    writeOut(`\nUSD per million tokens. Catalog of ${snapshot.date}: ${counted(snapshot.models.length, "model")}\n`);
  }
  return 0;
}

function nameOf({ vendor, model }: Pick<ListedModel, "vendor" | "model">): string {
  return `${vendor} ${model}`;
}

function cellsOf({ vendor, date, row }: CatalogModel): string[] {
  const { context_length, top_provider, pricing } = row;
  const output = isObject(top_provider) ? top_provider.max_completion_tokens : undefined;
  const prices = isObject(pricing)
    ? [pricing.prompt, pricing.completion].map((price) => perMillion(String(price)))
    : ["", ""];
  return [row.id, vendor, String(context_length), String(output), ...prices, date];
}

function show({ models }: CatalogSnapshot, id: string): number {
  const model = models.find(({ row }) => row.id === id);
  if (model === undefined) {
    writeErr(`"${id}" is not in the catalog; see the ids in "sluice models list"\n`);
    return 1;
  }
  writeOut(jsonText(model));
  return 0;
}

/** Limits for parsing a list. LiteLLM's has 2,600 models with 30 members each, models.dev's has 5,000 models. */
const LIST_LIMITS = { ...JSON_LIMITS, nodes: 2_000_000 };

/** Reads a price list. @throws {UsageError} if the file cannot be read or is no price list */
async function readList(path: string): Promise<ListedModel[]> {
  try {
    return readPriceList(parseJson(await Deno.readTextFile(path), LIST_LIMITS));
  } catch (error) {
    throw new UsageError(`Cannot read "${path}": ${messageOf(error)}`, { cause: error });
  }
}

/** Prints the differences. Nothing is changed, because operators set their own prices. Returns 1 if there are any. */
function compare(
  config: Config,
  list: readonly ListedModel[],
  { isJson, name }: { isJson: boolean; name: string },
): number {
  const matched = matchModels(config, list);
  const now = Date.now();
  const differences = matched.flatMap((match) => listDifferences(match, now));
  if (isJson) {
    const models = matched.filter((match) => listDifferences(match, now).length > 0).map(rowOf);
    writeOut(jsonText({ compared: matched.length, differences: differences.map(withoutIndex), models }));
  } else if (differences.length === 0) {
    writeOut(`No differences found: ${matched.length} of the configured models are in ${name}\n`);
  } else {
    const header = ["MODEL", "UPSTREAM", "MEMBER", "CONFIGURED", "LISTED"];
    const rows = differences.map((each) => [each.id, each.upstream, each.member, ...valueCells(each)]);
    writeOut(tableText([header, ...rows]));
    const count = counted(differences.length, "difference");
    writeOut(`\n${count} from ${name}. Nothing was changed; --json prints rows for the file\n`);
  }
  return differences.length === 0 ? 0 : 1;
}

function valueCells({ configured, listed }: Pick<ListedDifference, "configured" | "listed">): string[] {
  return [configured, listed].map((value) => value === null ? "-" : String(value));
}

function withoutIndex({ index: _, ...difference }: ListedDifference): Omit<ListedDifference, "index"> {
  return difference;
}

/** Prints a catalog file on standard output, and its changes on standard error. */
function printCatalog(
  list: readonly ListedModel[],
  snapshot: CatalogSnapshot,
  { source, date, only }: { source: string; date: string; only: readonly string[] },
): number {
  const name = source.slice(source.lastIndexOf("/") + 1);
  const { catalog, changes, added } = importList(list, snapshot, { date, source: name, only });
  const header = ["MODEL", "MEMBER", "CATALOG", "LISTED"];
  const rows = changes.map((change) => [change.id, change.member, ...valueCells(change)]);
  if (rows.length > 0) writeErr(`${tableText([header, ...rows])}\n`);
  writeErr(
    `${counted(catalog.models.length, "model")}, ${added.length} new; ${counted(rows.length, "member")} changed\n`,
  );
  if (added.length > 0) writeErr(`New: ${added.join(", ")}\n`);
  writeOut(jsonText(catalog));
  return 0;
}

/** Returns what the list says about a model as members of its row in the configuration. */
function rowOf({ model, listed }: ReturnType<typeof matchModels>[number]): Record<string, unknown> {
  const { context_length, max_completion_tokens, pricing } = listed;
  return {
    id: model.id,
    ...(context_length !== undefined && { context_length }),
    ...(max_completion_tokens !== undefined && { top_provider: { max_completion_tokens } }),
    pricing,
  };
}
