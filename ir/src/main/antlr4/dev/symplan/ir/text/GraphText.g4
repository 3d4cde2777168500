/**
 * The statements of a .graph file, each parsed alone; StatementReader says where they end.
 *
 * Words such as graph, group, ranks and device are names here, so that values may be called so;
 * GraphParser knows which rule to use from the first words. Every decision is LL(1), but for
 * trailing commas.
 */
grammar GraphText;

version : NAME NAME number = INT EOF ;

group
    : NAME name = (NAME | STRING) '='
      (parts += rankList (',' parts += rankList)*
      | meshWord = NAME sizes = dims dimWord = NAME dimensions += INT (',' dimensions += INT)*) EOF
    ;

rankList : '[' (items += rankItem (',' items += rankItem)*)? ']' ;

// One rank, or those of a slice as Python has it.
rankItem : first = INT (':' end = INT (':' step = INT)?)? ;

graphHead
    : NAME name = (NAME | STRING) '(' (params += param (',' params += param)* ','?)? ')'
      (ranksWord = NAME ranks = rankList)? '{' EOF
    ;

param : name = NAME ':' annotation = type ;

type
    : base = NAME (sizes = dims strides = dims?)? ('@' space = NAME)?
    | none = 'None'
    ;

dims : '[' (values += INT (',' values += INT)*)? ']' ;

assignment : targets += target (',' targets += target)* '=' value = call EOF ;

action : value = call EOF ;

target : name = NAME (':' annotation = type)? ;

call : op = OP_NAME '(' (args += arg (',' args += arg)* ','?)? ')' ;

// NAME begins a value, a keyword argument and device("…") alike.
arg : name = NAME ('=' value = expr | inside = parenthesized)? | plain = literal ;

expr : name = NAME (inside = parenthesized)? | plain = literal ;

// Holds more than the string of device("…"), so that a message can say that ops do not nest.
parenthesized : '(' (items += arg (',' items += arg)*)? ')' ;

literal
    : token = (INT | FLOAT | STRING | 'True' | 'False' | 'None' | TORCH)
    | nested = OP_NAME parenthesized
    | open = '[' (items += expr (',' items += expr)* ','?)? ']'
    ;

returnValues : NAME (values += expr (',' values += expr)*)? EOF ;

clauses : list += clause* EOF ;

clause : word = NAME '(' names += (NAME | INT) (',' names += (NAME | INT))* ')' ;

graphEnd : '}' EOF ;

LPAREN : '(' ;
RPAREN : ')' ;
LBRACKET : '[' ;
RBRACKET : ']' ;
LBRACE : '{' ;
RBRACE : '}' ;
COMMA : ',' ;
COLON : ':' ;
EQUALS : '=' ;
TRUE : 'True' ;
FALSE : 'False' ;
NONE : 'None' ;

INT : '-'? DIGITS ;
// inf and nan are words, as parameters may be called so.
FLOAT : '-'? (DIGITS '.' DIGITS? EXPONENT? | '.' DIGITS EXPONENT? | DIGITS EXPONENT) | '-inf' ;
TORCH : 'torch.' WORD ('.' WORD)* ;
OP_NAME : WORD '::' WORD ('.' WORD)? ;
NAME : WORD ;
STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* '"' | '\'' (~['\\\r\n] | '\\' ~[\r\n])* '\'' ;
UNCLOSED_STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* | '\'' (~['\\\r\n] | '\\' ~[\r\n])* ;

// Of schemas only, which are read by SchemaParser.
SCHEMA_SIGN : '->' | '?' | '!' | '|' | '*' | '.' | '...' ;

COMMENT : '#' ~[\r\n]* ;
NEWLINE : '\r'? '\n' ;
BLANKS : [ \t]+ -> skip ;
UNKNOWN : . ;

fragment WORD : [A-Za-z_] [A-Za-z0-9_]* ;
fragment DIGITS : [0-9]+ ;
fragment EXPONENT : [eE] [+-]? [0-9]+ ;
