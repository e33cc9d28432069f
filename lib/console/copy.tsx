/** Texts with a button that copies them. */
import type { VNode } from "preact";

/**
 * Shows a short text with a button that copies the text. The script `copy.js` makes the button visible.
 * @param props `label`: name of the text for screen readers
 */
export function Copyable({ text, label }: { text: string; label: string }): VNode {
  return (
    <span class="copyable">
      <code>{text}</code> <button type="button" class="copy quiet" hidden aria-label={`Copy ${label}`}>Copy</button>
    </span>
  );
}

/** Shows a text of several lines with a button that copies it. */
export function CopyableBlock({ text, label }: { text: string; label: string }): VNode {
  return (
    <div class="copyable">
      <pre tabIndex={0} aria-label={label}>{text}</pre>
      <button type="button" class="copy quiet" hidden aria-label={`Copy ${label}`}>Copy</button>
    </div>
  );
}
