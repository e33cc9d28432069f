/** Renders docs/reference/configuration.md from the schema of the configuration. */
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

/** An object that is the value of several members and has a section of its own. */
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

/** Defaults of top-level members. The JSON Schema lacks those of members that are transformed. */
const TOP_DEFAULTS: Readonly<Record<string, unknown>> = configSchema.parse({});

/** Members that every model must have, in the file or in the catalog of the release. */
const MODEL_MEMBERS = json(modelSchema).required ?? [];

/** Shared objects by the anchors of their sections. */
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
      "prices. A price times a group's `price_factor` must have at most 12 decimals, too. One request to a model " +
      "may cost at most 9.2 million USD: its context times the price.",
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

/** Returns the row of a top-level member. It links to the member's section if there is one. */
function topRow(name: string, schema: Schema): string[] {
  const [, type, byDefault, about] = row(name, { schema, required: false });
  return [hasSection(schema) ? `[${code(name)}](#${name})` : code(name), type ?? "", byDefault ?? "", about ?? ""];
}

/** Renders the section of a top-level member; empty if the member has no members of its own. */
function section(name: string, schema: Schema): string {
  if (!hasSection(schema)) return "";
  const example = EXAMPLES[name] === undefined ? "" : `\n\`\`\`jsonc\n${EXAMPLES[name].trim()}\n\`\`\`\n`;
  const note = NOTES[name] === undefined ? "" : `\n${NOTES[name].trim()}\n`;
  const restart = isRestartOnly(name) ? RESTART : "";
  const [prefix, inner] = innerOf(name, schema);
  return `## ${code(name)}\n\n${schema.description}.${restart}\n${example}\n${memberTable(prefix, inner, "")}${note}`;
}

/** Returns the object whose members a section lists, with the prefix of their paths. */
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

/** Returns the rows of all members of an object. Members of shared objects are left to the sections of these. */
function rowsOf(prefix: string, schema: Schema, self: string): string[][] {
  const members = new Map<string, { schema: Schema; required: boolean }>();
  for (const option of optionsOf(schema)) {
    for (const [name, member] of Object.entries(option.properties ?? {})) {
      const required = option.required?.includes(name) === true;
      const previous = members.get(name);
      const previousValues = previous?.schema.const === undefined ? [] : [previous.schema.const];
      const { enum: values, ...schema } = object(member);
      members.set(name, {
        schema: { ...schema, ...(values !== undefined && { enum: [...values, ...previousValues] }) },
        required,
      });
    }
  }
  const included = prefix === "" ? undefined : extendedBy(schema);
  for (const name of Object.keys(SHARED[included ?? ""]?.schema.properties ?? {})) members.delete(name);
  const includedRows = included === undefined
    ? []
    : [[code(`${prefix}…`), "", "", `All members of [${SHARED[included]?.type}](#${included}).`]];
  return [...members].flatMap(([name, member]): string[][] => {
    const path = prefix + name;
    const rows = [row(path, member)];
    const [inner, object] = innerOf(path, member.schema);
    const isShared = sharedOf(object) !== undefined && sharedOf(object) !== self;
    return isShared ? rows : [...rows, ...rowsOf(inner, object, self)];
  }).concat(includedRows);
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

/**
 * Returns whether a member changes only at a restart. `admin` is an exception: if it is set at the start, it can
 * change.
 */
function isRestartOnly(path: string): boolean {
  return path !== "admin" && RESTART_ONLY.some((member) => member === path);
}

/** Returns the text in the column of defaults; empty for an object whose members have defaults. */
function defaultOf(path: string, { schema, required }: { schema: Schema; required: boolean }): string {
  if (required) return "required";
  if (MODEL_MEMBERS.some((member) => path === `models[].${member}`)) return "required, or the catalog's";
  const value = schema.default ?? TOP_DEFAULTS[path];
  const isOfMembers = value === undefined || typeof value === "object" && value !== null &&
      !Array.isArray(value) && schema.properties !== undefined ||
    isNullable(schema) && jsonText(value) === "{}";
  return isOfMembers ? "" : code(jsonText(value));
}

/** Returns a type in words. */
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
  const most = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (minimum === undefined) return most === undefined ? "" : `, at most ${most}`;
  return most === undefined ? `, at least ${minimum}` : `, ${minimum} to ${most}`;
}

/** Returns the schema of an array's items; if short forms are allowed, too, that of the object. */
function itemOf({ type, items }: Schema): Schema | undefined {
  if (type !== "array" || items === undefined || Array.isArray(items)) return undefined;
  const item = object(items);
  return optionsOf(item).find(({ properties }) => properties !== undefined) ?? item;
}

/** Returns the schema of the values of an object with free names; `undefined` for any other schema. */
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

/** Returns the anchor of the shared object that has exactly these members. */
function sharedOf(schema: Schema): string | undefined {
  const members = JSON.stringify(schema.properties);
  return Object.keys(SHARED).find((anchor) => JSON.stringify(SHARED[anchor]?.schema.properties) === members);
}

/** Returns the anchor of the largest shared object whose members this object has, besides others. */
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
    ["Images", `${COUNTS.images}`],
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

/** Returns a schema in the form that it has within the whole JSON Schema. */
function json(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, { io: "input" });
}

/** Returns JSON with a space after the commas and colons that are not in strings. */
function jsonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${jsonText(member)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
