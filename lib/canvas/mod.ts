/** The painter behind `sluice/canvas`: paints an image from a prompt and edits images by the words of an instruction. */
export { startEdit } from "./edit.ts";
export { paint } from "./paint.ts";
export { flatten, free, orient, type Pixels } from "./pixels.ts";
