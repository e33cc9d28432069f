/** The tools of OpenAI that the client runs, with the forms of their calls and results in the responses protocol. */
import { z } from "zod";
import { decodeMedia, readMediaUrl } from "../canonical/media.ts";
import type { ContentBlock } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { objectOf, objectsOf, stringOf } from "../members.ts";
import type { ClientTool } from "./anthropic_client_tools.ts";

/** A tool of OpenAI, with the forms of the items of its calls and results. */
export interface OpenaiClientTool extends ClientTool {
  /** Type of the item with a call. The item with its result has the same type with `_output`. */
  call: string;
  /** Name of the function, unless the client has a function of this name. */
  name: string;
  idPrefix: string;
  /** Returns the arguments of a past call. */
  argumentsOf(item: JsonObject): JsonObject;
  /** Returns the members of the item for a call with valid arguments. */
  itemMembers(args: JsonObject): JsonObject;
  /** Returns the content of a result; undefined if only OpenAI stores it. */
  readResult(item: JsonObject): { blocks: ContentBlock[]; isError?: true } | undefined;
}

const milliseconds = z.number().int().optional().describe("Time limit in milliseconds");

const shell: OpenaiClientTool = {
  call: "shell_call",
  name: "shell",
  idPrefix: "sh",
  members: ["environment"],
  arguments: z.object({
    commands: z.array(z.string()).min(1).describe("Shell commands, run one after another"),
    timeout_ms: milliseconds,
    max_output_length: z.number().int().optional().describe("Maximum number of characters of output to return"),
  }),
  describe({ environment }) {
    const skills = objectsOf(objectOf(environment)?.skills).map(({ name, path, description }) =>
      `- ${stringOf(name) ?? ""} (${stringOf(path) ?? ""}): ${stringOf(description) ?? ""}`
    );
    const text = "Runs shell commands on the user's machine, and returns their output and exit codes.";
    return skills.length === 0
      ? text
      : [`${text} Skills, with the folders of their instructions:`, ...skills].join("\n");
  },
  argumentsOf: ({ action }) => objectOf(action) ?? {},
  itemMembers: ({ commands = null, timeout_ms = null, max_output_length = null }) => ({
    action: { commands, timeout_ms, max_output_length },
    environment: null,
  }),
  readResult: ({ output }) => textResult(writeJson(output ?? [])),
};

const localShell: OpenaiClientTool = {
  call: "local_shell_call",
  name: "local_shell",
  idPrefix: "lsh",
  members: [],
  arguments: z.object({
    command: z.array(z.string()).min(1).describe("The program and its arguments"),
    env: z.record(z.string(), z.string()).optional().describe("Environment variables"),
    timeout_ms: milliseconds,
    user: z.string().optional().describe("User who runs the command"),
    working_directory: z.string().optional(),
  }),
  describe: () => "Runs one command on the user's machine, without a shell, and returns its output.",
  argumentsOf({ action }) {
    const { type: _, ...args } = objectOf(action) ?? {};
    return args;
  },
  itemMembers: ({ env = {}, ...args }) => ({ action: { type: "exec", env, ...args } }),
  readResult: ({ output }) => textResult(textOf(output)),
};

const applyPatch: OpenaiClientTool = {
  call: "apply_patch_call",
  name: "apply_patch",
  idPrefix: "apc",
  members: [],
  // OpenAI and Anthropic refuse a schema with alternatives at the top.
  arguments: z.object({
    type: z.enum(["create_file", "update_file", "delete_file"]),
    path: z.string(),
    diff: z.string().optional().describe("Required unless the file is deleted"),
  }).refine(({ type, diff }) => type === "delete_file" || diff !== undefined),
  describe: () =>
    "Creates, updates or deletes one file. `diff` is in the V4A format. For create_file, each line of the new file has " +
    "a `+` before it. For update_file, a hunk begins with a line `@@`, which may name the function or class around it; " +
    "then come about three lines of context with a space before each, removed lines with `-` and added lines with `+`.",
  argumentsOf: ({ operation }) => objectOf(operation) ?? {},
  itemMembers: ({ diff, ...operation }) => ({
    operation: operation.type === "delete_file" || diff === undefined ? operation : { ...operation, diff },
  }),
  readResult: ({ status, output }) => ({
    ...textResult(stringOf(output) ?? stringOf(status) ?? ""),
    ...(status === "failed" && { isError: true }),
  }),
};

const point = { x: z.number().int(), y: z.number().int() };
const keys = z.array(z.string());
const heldKeys = keys.optional().describe("Keys held during the action");

const computerAction = z.discriminatedUnion("type", [
  z.object({ type: z.literal("screenshot") }),
  z.object({
    type: z.literal("click"),
    button: z.enum(["left", "right", "wheel", "back", "forward"]),
    ...point,
    keys: heldKeys,
  }),
  z.object({ type: z.literal("double_click"), ...point, keys: heldKeys }),
  z.object({ type: z.literal("drag"), path: z.array(z.object(point)).min(2), keys: heldKeys }),
  z.object({ type: z.literal("keypress"), keys }),
  z.object({ type: z.literal("move"), ...point, keys: heldKeys }),
  z.object({
    type: z.literal("scroll"),
    ...point,
    scroll_x: z.number().int(),
    scroll_y: z.number().int(),
    keys: heldKeys,
  }),
  z.object({ type: z.literal("type"), text: z.string() }),
  z.object({ type: z.literal("wait") }),
]);

/** The members that the items of both computer tools have. */
const COMPUTER = {
  call: "computer_call",
  name: "computer",
  idPrefix: "cu",
  returnsImages: true,
  readResult({ output }: JsonObject): { blocks: ContentBlock[] } | undefined {
    const url = stringOf(objectOf(output)?.image_url);
    if (url === undefined) return undefined;
    return { blocks: [{ type: "media", media: decodeMedia(() => readMediaUrl(url), "input") }] };
  },
} as const;

const computer: OpenaiClientTool = {
  ...COMPUTER,
  members: [],
  arguments: z.object({ actions: z.array(computerAction).min(1).describe("Actions, done one after another") }),
  describe: () => "Uses the mouse and keyboard of a computer, and returns a screenshot. Positions are in its pixels.",
  argumentsOf: ({ action, actions }) => ({ actions: actions ?? (action === undefined ? [] : [action]) }),
  itemMembers: ({ actions = [] }) => ({ actions, pending_safety_checks: [] }),
};

const computerPreview: OpenaiClientTool = {
  ...COMPUTER,
  members: ["display_width", "display_height", "environment"],
  arguments: z.object({ action: computerAction }),
  describe: ({ display_width, display_height, environment }) =>
    `Uses the mouse and keyboard of a computer (${String(environment)}), and returns a screenshot. Positions are in ` +
    `pixels of the display, which is ${String(display_width)} wide and ${String(display_height)} high.`,
  argumentsOf: ({ action, actions }) => ({ action: action ?? (Array.isArray(actions) ? actions[0] : undefined) ?? {} }),
  itemMembers: ({ action = {} }) => ({ action, pending_safety_checks: [] }),
};

/** OpenAI's tools that the client runs, by the type of the tool. */
export const OPENAI_CLIENT_TOOLS: Readonly<Record<string, OpenaiClientTool>> = {
  shell,
  local_shell: localShell,
  apply_patch: applyPatch,
  computer,
  computer_use_preview: computerPreview,
};

function textResult(text: string): { blocks: ContentBlock[] } {
  return { blocks: text === "" ? [] : [{ type: "text", text }] };
}

function textOf(output: Json | undefined): string {
  return stringOf(output) ?? (isObject(output) ? writeJson(output) : "");
}
