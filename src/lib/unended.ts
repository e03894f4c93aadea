/** A text of somebody else without the full stop at its end, for a sentence that goes on, or ends, after it. */
export const unended = (text: string): string => text.replace(/[\s.]+$/u, '');
