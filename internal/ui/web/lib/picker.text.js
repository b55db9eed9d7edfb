export default {
  "list": ["Directories", "目录"],
  "work": ["work tree", "工作树"],
  "broad": ["too wide", "范围过大"],
  "more": ["and more: type on", "还有更多，请继续输入"],
  "begin": ["Type a path, such as ~/project. The arrow keys choose.", "输入路径，例如 ~/project。用方向键选择。"],
  "is.work": ["A work tree:", "工作树："],
  "is.one": ["A directory:", "目录："],
  "inside": ["It lies in the work tree {path}.", "它位于工作树 {path} 中。"],
  "inside.take": ["Take that", "使用它"],
};
