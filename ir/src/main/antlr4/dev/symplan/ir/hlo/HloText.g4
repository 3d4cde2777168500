/**
 * The lines of XLA's HLO text, each parsed alone; StatementReader says where they end.
 *
 * The values of attributes are read as balanced tokens: HloAttributes reads those that matter, when
 * somebody asks. Decisions are LL(1). HloLexer finds the braces around a computation's body.
 */
grammar HloText;

module : keyword = NAME name = (NAME | STRING) (',' attributes += attribute)* ','? EOF ;

// FileNames, FunctionNames, FileLocations, StackFrames.
table : keyword = NAME EOF ;

row : number = NUMBER (text = STRING | open = '{' (keys += NAME '=' values += NUMBER ','?)* '}') EOF ;

// ENTRY %main (x: f32[4]) -> f32[4] {
computation : words += NAME+ (open = '(' inside ')' ARROW shape)? OPEN_BODY EOF ;

end : CLOSE_BODY EOF ;

// Behind the brace of a computation: , execution_thread="main"
afterEnd : (',' attribute)+ EOF ;

instruction
    : names += NAME+ '=' type = shape opcode = NAME
      '(' (literal | operands += operand (',' operands += operand)* ','?)? ')'
      (',' attributes += attribute)* ','? EOF
    ;

shape
    : NAME ('[' inside ']')? ('{' inside '}')?
    | '(' (shape (',' shape)*)? ')'
    ;

// Older dumps write the operand's shape before its name.
operand
    : first = NAME ('[' inside ']' ('{' inside '}')? name = NAME | name = NAME)?
    | '(' (shape (',' shape)*)? ')' name = NAME
    ;

literal : NUMBER | STRING | '{' inside '}' ;

attribute : key = NAME ('=' value)? ;

value : (NAME | NUMBER | STRING | SIGN | ARROW | '{' inside '}' | '(' inside ')' | '[' inside ']')+ ;

inside
    : (NAME | NUMBER | STRING | SIGN | ARROW | ',' | '=' | '{' inside '}' | '(' inside ')' | '[' inside ']')*
    ;

LPAREN : '(' ;
RPAREN : ')' ;
LBRACKET : '[' ;
RBRACKET : ']' ;
LBRACE : '{' ;
RBRACE : '}' ;
COMMA : ',' ;
EQUALS : '=' ;
ARROW : '->' ;

// The lexer takes braces for these where they open and close a body.
OPEN_BODY : '\u0001' ;
CLOSE_BODY : '\u0002' ;

SIGN : [:;*?+<>/!|.] | '<=' | '...' | '-' ;

// Also windows (3x3), paddings (0_1x0_0) and -inf.
NUMBER : '-'? [0-9] [A-Za-z0-9_.]* ([eE] [+-] [0-9]+)? | '-' ('inf' | 'nan') ;
// %custom-call.17#0 is a part of a tuple.
NAME : '%'? [A-Za-z_] [A-Za-z0-9_.\-]* ('#' [0-9]+)* ;
STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* '"' | '\'' (~['\\\r\n] | '\\' ~[\r\n])* '\'' ;
UNCLOSED_STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* | '\'' (~['\\\r\n] | '\\' ~[\r\n])* ;

INDEX : '/*' ~[*\r\n]* '*/' -> skip ;
COMMENT : ('//' | '#') ~[\r\n]* ;
NEWLINE : '\r'? '\n' ;
BLANKS : [ \t]+ -> skip ;
UNKNOWN : . ;
