/** The tools of Anthropic that the client runs. Their calls and results have the form of any tool's. */
import { z } from "zod";
import type { JsonObject } from "../../json/mod.ts";

/** A tool that the client runs, as a function: its description and arguments. */
export interface ClientTool {
  /** Members of the tool that the description covers or that mean nothing to other models. */
  members: readonly string[];
  arguments: z.ZodType<JsonObject>;
  /** True if results are images. */
  returnsImages?: boolean;
  describe(tool: JsonObject): string;
}

const path = z.string().describe("Path of the file or folder");
const viewRange = z.array(z.number().int()).optional().describe("First and last line to view; -1 is the last line");
const fileText = z.string().optional().describe("Content of the new file");
const oldText = z.string().optional().describe("Text to replace, which the file has exactly once");
const newText = z.string().optional().describe("Text in its place");
const insertLine = z.number().int().optional().describe("Line after which to insert; 0 is the beginning of the file");
const insertText = z.string().optional().describe("Text to insert");

const edits = {
  file_text: fileText,
  old_str: oldText,
  new_str: newText,
  insert_line: insertLine,
  insert_text: insertText,
  view_range: viewRange,
};

const point = z.array(z.number().int());

const computerActions = z.enum(
  `screenshot cursor_position mouse_move left_click right_click middle_click double_click triple_click left_click_drag
  left_mouse_down left_mouse_up scroll key hold_key type wait zoom`.split(/\s+/),
);

/** Anthropic's tools that the client runs, by the type of the tool without its date. */
export const ANTHROPIC_CLIENT_TOOLS: Readonly<Record<string, ClientTool>> = {
  bash: {
    members: [],
    arguments: z.object({
      command: z.string().optional().describe("Command to run"),
      restart: z.boolean().optional().describe("Restarts the shell in place of running a command"),
    }),
    describe: () => "Runs a command in a bash session that lasts for the whole conversation, and returns its output.",
  },
  computer: {
    members: ["display_width_px", "display_height_px", "display_number", "enable_zoom"],
    returnsImages: true,
    arguments: z.object({
      action: computerActions,
      coordinate: point.optional().describe("x and y of the action"),
      start_coordinate: point.optional().describe("x and y where left_click_drag begins"),
      text: z.string().optional().describe(
        "Text for type; keys for key and hold_key; key held during a click or scroll",
      ),
      scroll_direction: z.enum(["up", "down", "left", "right"]).optional(),
      scroll_amount: z.number().int().optional(),
      duration: z.number().optional().describe("Seconds for wait and hold_key"),
      region: point.optional().describe("x and y of two opposite corners for zoom"),
    }),
    describe: ({ display_width_px: width, display_height_px: height, enable_zoom }) =>
      "Uses the mouse and keyboard of a computer, and returns screenshots. Positions are in pixels of the display, which " +
      `is ${String(width)} wide and ${String(height)} high.${enable_zoom === true ? "" : " It cannot zoom."}`,
  },
  text_editor: {
    members: ["max_characters"],
    arguments: z.object({ command: z.enum(["view", "create", "str_replace", "insert"]), path, ...edits }),
    describe: () => "Views, creates and edits text files. `view` of a folder lists its files.",
  },
  memory: {
    members: [],
    arguments: z.object({
      command: z.enum(["view", "create", "str_replace", "insert", "delete", "rename"]),
      path: path.optional(),
      ...edits,
      old_path: z.string().optional().describe("Path before `rename`"),
      new_path: z.string().optional().describe("Path after `rename`"),
    }),
    describe: () =>
      "Keeps notes across conversations in files of the folder /memories. View the folder before you begin a task, and " +
      "write down what later conversations need.",
  },
};
