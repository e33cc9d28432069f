/** Makes docs/reference/configuration.md from the schema of the configuration. */
import { z } from "zod";
import { limitsSchema, modelSchema } from "../../lib/catalog/model.ts";
import { PRICES } from "../../lib/catalog/price_schema.ts";
import { ownTimeoutsSchema, timeoutsSchema } from "../../lib/catalog/timeouts.ts";
import { configSchema, groupSchema, secretSchema } from "../../lib/config.ts";
import { RESTART_ONLY } from "../../lib/config/restart_only_settings.ts";
import { JSON_LIMITS } from "../../lib/json/mod.ts";
import { COUNTS } from "../../lib/protocols/fields.ts";
import { MAX_HEAD_BYTES, MAX_HEADERS } from "../../lib/server/head.ts";
import { configJsonSchema } from "../schema.ts";
import { EXAMPLES, NOTES, SOURCES_TEXT } from "./configuration_texts.ts";
import { code, pageHead, table } from "./markdown.ts";

/** A schema of a member, or of what is in it. */
type Schema = z.core.JSONSchema.BaseSchema;

/** An object that several members have, with a section of its own. */
interface SharedObject {
  title: string;
  /** Name in the column of types. */
  type: string;
  about: string;
  schema: Schema;
}

const RESTART = " Changes take effect at the next start.";

const pricesSchema = z.strictObject(PRICES);
const plainPricesSchema = pricesSchema.pick({
  prompt: true,
  completion: true,
  input_cache_read: true,
  input_cache_write_5m: true,
  input_cache_write_1h: true,
});
const tokenPricesSchema = plainPricesSchema.extend({ context_tiers: PRICES.context_tiers });

/** Defaults of top-level members: the JSON Schema leaves out those of members that are transformed. */
const TOP_DEFAULTS: Readonly<Record<string, unknown>> = configSchema.parse({});

/** Members that a model has, in the file or in the catalog of the release. */
const MODEL_MEMBERS = json(modelSchema).required ?? [];

/** Objects by the anchors of their sections. */
const SHARED: Readonly<Record<string, SharedObject>> = {
  "secrets": {
    title: "Secrets",
    type: "secret",
    about: "The file never contains a secret. It names the environment variable that holds it.",
    schema: json(secretSchema),
  },
  "rate-limits": {
    title: "Rate limits",
    type: "rate limits",
    about: "Limits of a model, a group or a key. A request must fit into all of them, and counts against all of them.",
    schema: json(limitsSchema),
  },
  "budgets": {
    title: "Budgets",
    type: "budget",
    about: "Budget of a group or a key. The maximum cost of a request is held before it starts and settled at its " +
      "end, so that parallel requests cannot overspend.",
    schema: json(groupSchema.shape.budget.unwrap()),
  },
  "user-budgets": {
    title: "User budgets",
    type: "user budget",
    about: "Budget of each end user of a key, so that an application with one key can limit its users.",
    schema: json(groupSchema.shape.user_budget.unwrap()),
  },
  "prices": {
    title: "Prices",
    type: "prices",
    about: 'All prices are decimal strings with at most 12 decimals. `"0"` is a price; a model must have ' +
      "prices. A price times a group's `price_factor` must have at most 12 decimals, too.",
    schema: json(pricesSchema),
  },
  "token-prices": {
    title: "Token prices",
    type: "token prices",
    about: "Prices of tokens in a service tier or a time window.",
    schema: json(tokenPricesSchema),
  },
  "plain-prices": {
    title: "Plain prices",
    type: "plain prices",
    about: "Prices of tokens, regardless of the size of the input.",
    schema: json(plainPricesSchema),
  },
  "timeouts": { title: "Timeouts", type: "timeouts", about: "Timeouts of an upstream.", schema: json(timeoutsSchema) },
  "other-timeouts": {
    title: "Other timeouts",
    type: "timeouts",
    about: "Timeouts of a model or a target that differ from the upstream's. Omitted members do not differ.",
    schema: json(ownTimeoutsSchema),
  },
};

/** Renders the page. */
export function configurationPage(): string {
  const { properties = {} }: Schema = JSON.parse(configJsonSchema());
  const names = Object.keys(properties);
  return [
    pageHead("Configuration", SOURCES_TEXT),
    "## All members\n\nEvery member may be left out. Unknown members are mistakes.\n",
    table(["Member", "Type", "Default", "Description"], names.map((name) => topRow(name, at(properties, name)))),
    ...names.map((name) => section(name, at(properties, name))).filter((text) => text !== ""),
    "## Shared objects\n",
    ...Object.entries(SHARED).map(([anchor, { title, about, schema }]) =>
      `### ${title}\n\n${about}\n\n${memberTable("", schema, anchor)}`
    ),
    fixedLimits(),
  ].join("\n");
}

/** Row of the table of top-level members. Objects have their members in a section. */
function topRow(name: string, schema: Schema): string[] {
  const [, type, byDefault, about] = row(name, { schema, required: false });
  return [hasSection(schema) ? `[${code(name)}](#${name})` : code(name), type ?? "", byDefault ?? "", about ?? ""];
}

function section(name: string, schema: Schema): string {
  if (!hasSection(schema)) return "";
  const example = EXAMPLES[name] === undefined ? "" : `\n\`\`\`jsonc\n${EXAMPLES[name].trim()}\n\`\`\`\n`;
  const note = NOTES[name] === undefined ? "" : `\n${NOTES[name].trim()}\n`;
  const restart = isRestartOnly(name) ? RESTART : "";
  const [prefix, inner] = innerOf(name, schema);
  return `## ${code(name)}\n\n${schema.description}.${restart}\n${example}\n${memberTable(prefix, inner, "")}${note}`;
}

/** The object whose members a section lists, with the prefix of their paths. */
function innerOf(name: string, schema: Schema): [prefix: string, schema: Schema] {
  const item = itemOf(schema);
  if (item !== undefined) return [`${name}[].`, item];
  const value = valueOf(schema);
  return value === undefined ? [`${name}.`, schema] : [`${name}.NAME.`, value];
}

function memberTable(prefix: string, schema: Schema, self: string): string {
  const rows = rowsOf(prefix, schema, self);
  return table(["Member", "Type", "Default", "Description"], rows);
}

/** Rows of all members of an object. Members of shared objects are in the sections of these. */
function rowsOf(prefix: string, schema: Schema, self: string): string[][] {
  const members = new Map<string, { schema: Schema; required: boolean }>();
  for (const option of optionsOf(schema)) {
    for (const [name, member] of Object.entries(option.properties ?? {})) {
      const required = option.required?.includes(name) === true;
      const known = members.get(name);
      const other = known?.schema.const === undefined ? [] : [known.schema.const];
      const { enum: values, ...schema } = object(member);
      members.set(name, {
        schema: { ...schema, ...(values !== undefined && { enum: [...values, ...other] }) },
        required,
      });
    }
  }
  const extended = prefix === "" ? undefined : extendedBy(schema);
  for (const name of Object.keys(SHARED[extended ?? ""]?.schema.properties ?? {})) members.delete(name);
  const rest = extended === undefined
    ? []
    : [[code(`${prefix}…`), "", "", `All members of [${SHARED[extended]?.type}](#${extended}).`]];
  return [...members].flatMap(([name, member]): string[][] => {
    const path = prefix + name;
    const rows = [row(path, member)];
    const [inner, object] = innerOf(path, member.schema);
    const isShared = sharedOf(object) !== undefined && sharedOf(object) !== self;
    return isShared ? rows : [...rows, ...rowsOf(inner, object, self)];
  }).concat(rest);
}

function row(path: string, { schema, required }: { schema: Schema; required: boolean }): string[] {
  const examples = schema.examples ?? itemOf(schema)?.examples?.map((value) => [value]) ?? [];
  const example = examples[0] === undefined ? "" : ` Example: ${code(jsonText(examples[0]))}.`;
  const restart = isRestartOnly(path) ? RESTART : "";
  return [
    code(path),
    typeOf(schema),
    defaultOf(path, { schema, required }),
    `${schema.description}.${example}${restart}`,
  ];
}

/** An `admin` that is there at the start can change. */
function isRestartOnly(path: string): boolean {
  return path !== "admin" && RESTART_ONLY.some((member) => member === path);
}

function defaultOf(path: string, { schema, required }: { schema: Schema; required: boolean }): string {
  if (required) return "required";
  if (MODEL_MEMBERS.some((member) => path === `models[].${member}`)) return "required, or the catalog's";
  const value = schema.default ?? TOP_DEFAULTS[path];
  const isOfMembers = value === undefined || typeof value === "object" && value !== null &&
      !Array.isArray(value) && schema.properties !== undefined ||
    isNullable(schema) && jsonText(value) === "{}";
  return isOfMembers ? "" : code(jsonText(value));
}

/** The type in words. */
function typeOf(schema: Schema): string {
  const shared = sharedOf(schema);
  if (shared !== undefined) return `[${SHARED[shared]?.type}](#${shared})`;
  if (isNullable(schema)) return `${typeOf(withoutNull(schema))} or ${code("null")}`;
  if (schema.const !== undefined) return code(jsonText(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((value) => code(jsonText(value))).join(", ");
  const item = itemOf(schema);
  if (item !== undefined) return sharedOf(item) !== undefined ? `list of ${typeOf(item)}` : `list: ${typeOf(item)}`;
  const value = valueOf(schema);
  if (value !== undefined) return `object by name: ${typeOf(value)}`;
  if (Array.isArray(schema.type)) return schema.type.map(String).join(" or ");
  if (schema.type === "integer" || schema.type === "number") return `${schema.type}${rangeOf(schema)}`;
  return typeof schema.type === "string" ? schema.type : "object";
}

function rangeOf({ minimum, maximum }: Schema): string {
  const limit = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (minimum === undefined) return limit === undefined ? "" : `, at most ${limit}`;
  return limit === undefined ? `, at least ${minimum}` : `, ${minimum} to ${limit}`;
}

/** The schema of an array's items, the whole object where short forms are allowed, too. */
function itemOf({ type, items }: Schema): Schema | undefined {
  if (type !== "array" || items === undefined || Array.isArray(items)) return undefined;
  const item = object(items);
  return optionsOf(item).find(({ properties }) => properties !== undefined) ?? item;
}

/** The schema of the values of an object whose names are free. */
function valueOf({ type, additionalProperties }: Schema): Schema | undefined {
  return type === "object" && typeof additionalProperties === "object" ? additionalProperties : undefined;
}

function optionsOf(schema: Schema): Schema[] {
  return (schema.oneOf ?? schema.anyOf ?? [schema]).map(object);
}

function isNullable({ anyOf = [] }: Schema): boolean {
  return anyOf.some((option) => object(option).type === "null");
}

function withoutNull(schema: Schema): Schema {
  return optionsOf(schema).find(({ type }) => type !== "null") ?? schema;
}

function hasSection(schema: Schema): boolean {
  const [, inner] = innerOf("", schema);
  return optionsOf(inner).some(({ properties }) => properties !== undefined);
}

/** Anchor of the shared object that has these members. */
function sharedOf(schema: Schema): string | undefined {
  const members = JSON.stringify(schema.properties);
  return Object.keys(SHARED).find((anchor) => JSON.stringify(SHARED[anchor]?.schema.properties) === members);
}

/** Anchor of the largest shared object whose members this object has beside others. */
function extendedBy({ properties = {} }: Schema): string | undefined {
  const isPart = ([, { schema }]: [string, SharedObject]) =>
    Object.entries(schema.properties ?? {}).every(([name, member]) =>
      JSON.stringify(member) === JSON.stringify(properties[name])
    );
  const size = ([, { schema }]: [string, SharedObject]) => Object.keys(schema.properties ?? {}).length;
  return Object.entries(SHARED).filter(isPart).sort((one, other) => size(other) - size(one))[0]?.[0];
}

function fixedLimits(): string {
  const rows: [what: string, most: string][] = [
    ["Headers", `${MAX_HEADERS}, together ${MAX_HEAD_BYTES} bytes`],
    ["Nesting of a JSON body", `${JSON_LIMITS.depth} levels`],
    ["Values of a JSON body", `${JSON_LIMITS.nodes}`],
    ["Members of one object", `${JSON_LIMITS.keys}`],
    ["Messages or items", `${COUNTS.messages}`],
    ["Parts of one message", `${COUNTS.parts}`],
    ["Images and files", `${COUNTS.images}`],
    ["Tools", `${COUNTS.tools}`],
    ["Stop sequences", `${COUNTS.stops}`],
  ];
  const intro = "No setting changes these limits. A request beyond them gets 400.";
  return `## Fixed limits\n\n${intro}\n\n${table(["What", "At most"], rows)}`;
}

function object(schema: boolean | Schema): Schema {
  return typeof schema === "boolean" ? {} : schema;
}

function at(properties: NonNullable<Schema["properties"]>, name: string): Schema {
  return object(properties[name] ?? {});
}

/** The schema as it is within the whole one. */
function json(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, { io: "input" });
}

/** JSON with a space after commas and colons outside of strings. */
function jsonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${jsonText(member)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
